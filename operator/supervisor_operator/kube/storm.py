"""The storm guard: where most agents of a namespace fall silent at once, the fault is not theirs.

It is on while at least ten agents, and more than half of them, are silent together with their
relays; it stays on for five minutes, or until beats return.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

FEWEST = 10
SHARE = 0.5
HOLD_SECONDS = 300.0
COUNT_EVERY_SECONDS = 1.0
COUNT_IDLY_SECONDS = 10.0
"""Counting looks at each agent of the namespace: as long as nobody asks in earnest, seldom."""

Count = Callable[[str], tuple[int, int]]
"""Silent agents with silent relays, and all beating agents, of a namespace."""


@dataclass(slots=True)
class _Guard:
    counted_at: float = float("-inf")
    since: float | None = None

    def is_on(self, now: float) -> bool:
        return self.since is not None and now - self.since < HOLD_SECONDS


class StormWatch:
    def __init__(self, count: Count, clock: Callable[[], float]) -> None:
        self._count = count
        self._clock = clock
        self._guards: dict[str, _Guard] = {}

    @property
    def active(self) -> int:
        """Namespaces in which the guard is on."""
        now = self._clock()
        return sum(guard.is_on(now) for guard in self._guards.values())

    def is_on(self, namespace: str, now: float, *, in_earnest: bool = True) -> bool:
        """`in_earnest` where a remedy may depend on it."""
        guard = self._guards.setdefault(namespace, _Guard())
        every = COUNT_EVERY_SECONDS if in_earnest else COUNT_IDLY_SECONDS
        if now - guard.counted_at >= every:
            guard.counted_at = now
            silent, total = self._count(namespace)
            is_storm = total >= FEWEST and silent > SHARE * total
            guard.since = (guard.since if guard.since is not None else now) if is_storm else None
        return guard.is_on(now)
