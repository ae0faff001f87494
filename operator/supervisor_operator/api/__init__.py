"""The wire: what users write and what the API server stores."""
