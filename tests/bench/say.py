"""Progress for the person who waits, and what went wrong in words."""

from __future__ import annotations

import sys
import time

_STARTED = time.monotonic()


class BenchError(Exception):
    pass


def say(text: str) -> None:
    print(f"[{time.monotonic() - _STARTED:6.1f} s] {text}", file=sys.stderr, flush=True)
