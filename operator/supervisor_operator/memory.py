"""What memory the process can do without, and what its garbage collector need not look at."""

from __future__ import annotations

import gc
from asyncio.sslproto import SSLProtocol

TLS_BUFFER = 64 * 1024
"""Four records of TLS; asyncio takes 256 KiB for each connection, mostly for a few KiB of JSON."""


def save_memory() -> None:
    """Once, before any connection is opened."""
    SSLProtocol.max_size = TLS_BUFFER
    keep_for_good()


def keep_for_good() -> None:
    """Leave all that lives now out of further collections.

    Modules and the stores of a fleet stay anyway, and what they drop goes by its reference count.
    Looking through them took a fifth of a second at a time while agents were being started.
    """
    gc.collect()
    gc.freeze()
