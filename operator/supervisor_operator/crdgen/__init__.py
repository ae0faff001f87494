"""Turns the wire models into CRDs; the models are the only source."""
