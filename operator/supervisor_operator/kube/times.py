"""When this operator first saw a fact about a pod, by its own monotonic clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from supervisor_operator.core.observed import PodView, Sightings


@dataclass(slots=True)
class _Times:
    created: float
    seen: PodView | None = None
    running: float | None = None
    terminating: float | None = None
    ended_by: float | None = None


class PodTimes:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times: dict[str, _Times] = {}

    def note(self, pod: PodView) -> bool:
        """Whether it is news, or only what was noted before: our own write come back, mostly."""
        now = self._clock()
        times = self._times.setdefault(pod.uid, _Times(now))
        before, times.seen = times.seen, pod
        if pod.running and times.running is None:
            times.running = now
        if pod.terminating and times.terminating is None:
            times.terminating = now
        if pod.ended_by and times.ended_by is None:
            times.ended_by = now
        return pod.is_news_after(before)

    def shift(self, seconds: float) -> None:
        """We were blind for so long: no time limit of a pod ran on meanwhile."""
        now = self._clock()
        for times in self._times.values():
            times.running = _later(times.running, seconds, now)
            times.terminating = _later(times.terminating, seconds, now)
            times.ended_by = _later(times.ended_by, seconds, now)

    def forget(self, uid: str) -> None:
        self._times.pop(uid, None)

    def sightings(self, uid: str, now: float) -> Sightings:
        found = self._times.get(uid)
        if found is None:
            return Sightings()
        return Sightings(
            created=now - found.created,
            running=_since(found.running, now),
            terminating=_since(found.terminating, now),
            ended_by=_since(found.ended_by, now),
        )


def _later(moment: float | None, seconds: float, now: float) -> float | None:
    return None if moment is None else min(now, moment + seconds)


def _since(moment: float | None, now: float) -> float | None:
    return None if moment is None else now - moment
