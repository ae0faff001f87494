"""Everything that knows kopf: how its events reach the stores, and how it is set up."""
