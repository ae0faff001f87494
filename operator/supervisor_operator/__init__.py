"""Supervision trees for Kubernetes."""
