"""Whether a pod was created in a rush, among many others.

Then a status that only says "on its way" would cost the API server more than the pod it tells of,
and be outdated when it is read. So it waits a little, and is mostly overtaken by the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

FEWEST = 20
WITHIN_SECONDS = 2.0
HOLD_SECONDS = 15.0


class Burst:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._created: deque[float] = deque(maxlen=FEWEST)
        self._rush_at = float("-inf")

    def note(self) -> None:
        """A pod was created."""
        now = self._clock()
        self._created.append(now)
        if len(self._created) == FEWEST and now - self._created[0] <= WITHIN_SECONDS:
            self._rush_at = now

    def hold(self, age: float) -> float | None:
        """How long news of a first pod of this age may wait; None: tell it now."""
        if self._clock() - age > self._rush_at + WITHIN_SECONDS:
            return None
        return HOLD_SECONDS - age if age < HOLD_SECONDS else None
