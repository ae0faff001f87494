"""The only place of this package that reads a clock.

Silence is counted on the monotonic clock. The wall clock says one thing only: how old a beat is at
the moment it is first seen, because a file can carry no other kind of time.
"""

import time

monotonic = time.monotonic


def wall() -> float:
    return time.time()  # noqa: TID251 - beat files carry wall-clock times, so one must be read
