"""The latest beats of each agent, as they were seen to come: a Heartbeat has only its last."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from supervisor_operator.kube.store import Key

SHOWN = 60
"""Intervals that are told of."""
HELD = 2 * SHOWN
"""A relay may beat twice in one."""
LATE = 0.5
"""Part of an interval by which a beat may come late before one is missed."""


@dataclass(frozen=True, slots=True)
class Stroke:
    time: datetime
    run: int


@dataclass(frozen=True, slots=True)
class Run:
    """A run and when its silence ends: now, or when it ended."""

    number: int
    until: datetime


@dataclass(slots=True)
class _Line:
    """Numbers only: there is one for each agent."""

    times: array[float] = field(default_factory=lambda: array("d"))
    runs: array[int] = field(default_factory=lambda: array("l"))
    sequence: int = -1


class Rhythm:
    def __init__(self) -> None:
        self._lines: dict[Key, _Line] = {}

    def put(self, agent: Key, stroke: Stroke, sequence: int) -> None:
        line = self._lines.setdefault(agent, _Line())
        # A relay tells of the same beat again for as long as there is no other.
        if line.runs and (line.runs[-1], line.sequence) == (stroke.run, sequence):
            return
        line.sequence = sequence
        line.times.append(stroke.time.timestamp())
        line.runs.append(stroke.run)
        if len(line.runs) > HELD:
            del line.times[0], line.runs[0]

    def drop(self, agent: Key) -> None:
        self._lines.pop(agent, None)

    def of(self, agent: Key) -> list[Stroke]:
        line = self._lines.get(agent, _Line())
        pairs = zip(line.times, line.runs, strict=True)
        return [Stroke(datetime.fromtimestamp(time, UTC), run) for time, run in pairs]


def missed(strokes: Sequence[Stroke], interval: timedelta, runs: Sequence[Run]) -> list[datetime]:
    """When a beat was due and none came; of runs without a known end only between their beats."""
    return [
        due
        for number, stroke in enumerate(strokes)
        for due in _due(stroke, _end(stroke, strokes[number + 1 :], runs), interval)
    ]


def _end(stroke: Stroke, later: Sequence[Stroke], runs: Sequence[Run]) -> datetime:
    if later and later[0].run == stroke.run:
        return later[0].time
    return next((run.until for run in runs if run.number == stroke.run), stroke.time)


def _due(stroke: Stroke, end: datetime, interval: timedelta) -> Iterator[datetime]:
    """The latest are enough: a silence may be days long."""
    count = int((end - stroke.time) / interval - LATE)
    for number in range(max(1, count - SHOWN + 1), count + 1):
        yield stroke.time + number * interval


def run_of(pod: str) -> int:
    """The run that a pod was made for, by its name; 0 where that is no name of ours."""
    number = pod.rpartition("-r")[2]
    return int(number) if number.isdecimal() else 0
