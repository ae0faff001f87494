"""Where things are kept: outside the checkout, so that the next clone finds them."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
CRDS = CHECKOUT / "crds"


def cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "supervisor-operator"


def clusters() -> Path:
    return cache() / "clusters"


def kept_cluster() -> Path:
    """The folder of this checkout's own cluster, the one of `make cluster-up`."""
    return clusters() / f"kept-{hashlib.sha256(str(CHECKOUT).encode()).hexdigest()[:10]}"


@contextmanager
def locked(name: str) -> Iterator[None]:
    """One at a time per user: a second one waits, and then finds the work done."""
    with (cache() / f"{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
