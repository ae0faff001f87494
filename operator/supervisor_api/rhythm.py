"""The latest beats of each agent, as they were seen to come: a Heartbeat has only its last."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from supervisor_operator.kube.store import Key

HELD = 60
LATE = 0.5
"""Part of an interval by which a beat may come late before one is missed."""


@dataclass(frozen=True, slots=True)
class Stroke:
    time: datetime
    pod: str
    sequence: int


@dataclass(frozen=True, slots=True)
class Run:
    """A pod and when its silence ends: now, or when it ended."""

    pod: str
    until: datetime


class Rhythm:
    def __init__(self) -> None:
        self._strokes: dict[Key, deque[Stroke]] = {}

    def put(self, agent: Key, stroke: Stroke) -> None:
        known = self._strokes.setdefault(agent, deque(maxlen=HELD))
        # A relay tells of the same beat again for as long as there is no other.
        if not known or (known[-1].pod, known[-1].sequence) != (stroke.pod, stroke.sequence):
            known.append(stroke)

    def drop(self, agent: Key) -> None:
        self._strokes.pop(agent, None)

    def of(self, agent: Key) -> tuple[Stroke, ...]:
        return tuple(self._strokes.get(agent, ()))


def missed(strokes: Sequence[Stroke], interval: timedelta, runs: Sequence[Run]) -> list[datetime]:
    """When a beat was due and none came; of pods without a known end only between their beats."""
    return [
        due
        for number, stroke in enumerate(strokes)
        for due in _due(stroke, _end(stroke, strokes[number + 1 :], runs), interval)
    ]


def _end(stroke: Stroke, later: Sequence[Stroke], runs: Sequence[Run]) -> datetime:
    if later and later[0].pod == stroke.pod:
        return later[0].time
    return next((run.until for run in runs if run.pod == stroke.pod), stroke.time)


def _due(stroke: Stroke, end: datetime, interval: timedelta) -> Iterator[datetime]:
    """The latest are enough: a silence may be days long."""
    count = int((end - stroke.time) / interval - LATE)
    for number in range(max(1, count - HELD + 1), count + 1):
        yield stroke.time + number * interval
