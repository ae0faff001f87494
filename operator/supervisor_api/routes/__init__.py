"""What is answered under /api/v1."""
