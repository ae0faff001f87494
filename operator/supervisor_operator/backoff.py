"""Delays that grow and scatter, yet are the same on every run: the jitter is a hash, not a dice."""

from __future__ import annotations

import hashlib

_MAX_DOUBLINGS = 32


def backoff(attempt: int, *, base: float, cap: float, seed: object) -> float:
    """Delay before the attempt after the nth (from 1): doubled each time, half of it jitter."""
    doublings = min(max(attempt - 1, 0), _MAX_DOUBLINGS)
    return min(base * 2.0**doublings, cap) * (0.5 + 0.5 * scatter(seed, attempt))


def scatter(seed: object, attempt: int) -> float:
    """A number in [0, 1) that depends on nothing but its arguments."""
    digest = hashlib.blake2b(repr((seed, attempt)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64
