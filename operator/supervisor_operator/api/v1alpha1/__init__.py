"""Group supervision.dev, version v1alpha1."""
