"""The management API: see and steer agents over HTTP, each caller with the rights of its token."""
