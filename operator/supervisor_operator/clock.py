"""The wall clock, read in one place only; durations are measured by `time.monotonic`."""

from __future__ import annotations

from datetime import UTC, datetime


def wall_clock() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - the one place where the wall clock is read
