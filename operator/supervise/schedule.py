"""When the relay reports: at most once per beat, never all relays at the same moment."""

import random

FIRST_RETRY = 0.5
SPREAD = 0.1  # of the interval


class Schedule:
    def __init__(self, interval: float, look: float, now: float) -> None:
        self._interval = interval
        self._look = look
        self._failures = 0
        self._news_at = now
        self._at = now + interval

    def due(self, now: float, *, news: bool) -> bool:
        return now >= (self._news_at if news else self._at)

    def succeeded(self, now: float) -> None:
        self._failures = 0
        interval = self._interval * random.uniform(1, 1 + SPREAD)  # noqa: S311 - spreads load
        self._news_at = now + interval / 2
        # One look more, so that an agent that beats on time is reported once per beat, not twice.
        self._at = now + interval + self._look

    def failed(self, now: float) -> None:
        longest = min(self._interval, FIRST_RETRY * 2 ** min(self._failures, 20))
        self._failures += 1
        self._news_at = self._at = now + longest * random.uniform(0.5, 1)  # noqa: S311
