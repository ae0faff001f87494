"""`make up` and `make demo`: the product on a cluster of its own, for someone who just came."""
