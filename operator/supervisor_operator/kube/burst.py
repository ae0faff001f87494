"""Whether many agents are being started right now.

Then a status that only says "on its way" would cost the API server more than the pod it tells of,
and be outdated when it is read. So it waits a little, and is mostly overtaken by the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

FEWEST = 20
WITHIN_SECONDS = 2.0
HOLD_SECONDS = 5.0


class Burst:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._created: deque[float] = deque(maxlen=FEWEST)

    def note(self) -> None:
        """A pod was created."""
        self._created.append(self._clock())

    def hold(self, age: float) -> float | None:
        """How long news of a first pod of this age may wait; None: tell it now."""
        if len(self._created) < FEWEST or self._clock() - self._created[0] > WITHIN_SECONDS:
            return None
        return HOLD_SECONDS - age if age < HOLD_SECONDS else None
