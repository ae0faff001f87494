"""Stories told on several stages at once: each once or twice undisturbed, then disturbed.

An undisturbed telling gives the writes, and with a second one the pattern of the end. A point is
one of those writes and what happens there, a kill or a refusal. A write is known by its words and
not by its number: what several workers do at a time may come in another order the next time.
"""

from __future__ import annotations

import queue
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

from tests.support.endings import KINDS, cast, common, end_of, lacks
from tests.support.kubectl import Kubectl
from tests.support.proxy_server import Write
from tests.support.stage import (
    CUSTOM,
    LOST,
    QUIET_SECONDS,
    ROLLED_UP_SECONDS,
    WAIT_SECONDS,
    Stage,
    open_stage,
)

TRIES = 2
Json = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Story:
    """`prepare` leads up to it, `act` is what happens, `finish` what it takes to reach the end."""

    name: str
    act: Callable[[Stage, str], None]
    finish: Callable[[Stage, str], None]
    prepare: Callable[[Stage, str], None] = lambda _stage, _name: None
    rolls_up: bool = False
    """Somebody above is told of it, which may take some seconds."""

    @property
    def quiet_seconds(self) -> float:
        return ROLLED_UP_SECONDS if self.rolls_up else QUIET_SECONDS


@dataclass(frozen=True, slots=True)
class Telling:
    story: Story
    start: Json
    writes: tuple[str, ...]
    work: Counter[str]
    end: Json

    def agree(self, other: Telling) -> Telling:
        """What two undisturbed tellings have in common."""
        assert self.work == other.work, f"{self.story.name}: {self.work} and {other.work}"
        start, end = common(self.start, other.start), common(self.end, other.end)
        return Telling(self.story, start, self.writes, self.work, end)

    def points(self, ways: Sequence[str]) -> list[Point]:
        """All writes but repetitions that the server refused: those may not come again."""
        return [
            Point(self, what, nth, how)
            for number, what in enumerate(self.writes, 1)
            if (nth := self.writes[:number].count(what)) <= self.work[what]
            or what.endswith("/status")
            for how in ways
        ]


@dataclass(frozen=True, slots=True)
class Point:
    telling: Telling
    what: str
    nth: int
    how: str

    @property
    def name(self) -> str:
        return f"{self.telling.story.name}: {self.how} {self.what} ({self.nth})"

    @property
    def work(self) -> tuple[Counter[str], ...]:
        """As in the undisturbed story; what nobody answered may be asked for once more."""
        once = self.telling.work
        return (once, once + Counter([self.what])) if self.how == LOST else (once,)


def work(stage: Stage) -> Counter[str]:
    """What was done to whom, statuses left out: they are compared as a part of the end."""
    return Counter(stage.told(write) for write in stage.writes() if is_work(write))


def is_work(write: Write) -> bool:
    done = write.status is not None and write.status < HTTPStatus.MULTIPLE_CHOICES
    return done and not write.path.endswith("/status") and "/events" not in write.path


def tell(stage: Stage, story: Story) -> Telling:
    """Undisturbed."""
    with beginning(stage, story) as name:
        stage.until_quiet(story.quiet_seconds)
        start = end_of(stage, name)
        stage.base = len(stage.proxy.writes)
        story.act(stage, name)
        story.finish(stage, name)
        stage.until_quiet(story.quiet_seconds)
        writes = tuple(stage.told(one) for one in stage.writes())
        telling = Telling(story, start, writes, work(stage), end_of(stage, name))
        clear(stage, name)
        return telling


def tell_disturbed(stage: Stage, point: Point) -> bool:
    """Tells whether it happened where it should: two statuses may be written as one."""
    telling = point.telling
    with beginning(stage, telling.story) as name:
        until_like(stage, name, telling.start, point)
        stage.disturb_at(point.what, point.nth, point.how)
        telling.story.act(stage, name)
        telling.story.finish(stage, name)
        until_like(stage, name, telling.end, point)
        # The end may be seen before its last write is answered, or its striker is through.
        is_reached = stage.has_come(point.what, point.nth) and stage.disturbed.wait(WAIT_SECONDS)
        stage.until(
            lambda: work(stage) in point.work,
            lambda: f"{point.name}: {work(stage)}, not {telling.work}",
        )
        stage.look_back()
        stage.remember(partial(check_and_clear, stage, name, point, len(stage.proxy.writes)))
        return is_reached


def until_like(stage: Stage, name: str, pattern: Json, point: Point) -> None:
    def missing() -> list[str]:
        return next((found for kind in KINDS if (found := lacks(stage, name, pattern, kind))), [])

    stage.until(lambda: not missing(), lambda: "\n".join([point.name, *missing()]))


def check_and_clear(stage: Stage, name: str, point: Point, since: int) -> None:
    """An end is one only if it stays: nothing was done since, while another story was told."""
    late = [stage.told(one, name) for one in stage.proxy.writes[since:] if is_work(one)]
    assert not (mine := [what for what in late if "NAME" in what]), f"{point.name}, later: {mine}"
    until_like(stage, name, point.telling.end, point)
    clear(stage, name)


@contextmanager
def beginning(stage: Stage, story: Story) -> Iterator[str]:
    """Objects of a new name, ready for the story."""
    name = stage.begin()
    try:
        story.prepare(stage, name)
        yield name
    except BaseException:
        clear(stage, name)
        raise
    finally:
        stage.sentence = None


def clear(stage: Stage, name: str) -> None:
    for run in (1, 2):
        with suppress(KeyError):
            stage.fleet.leave(f"{name}-r{run}")
    for path in (f"{CUSTOM} supervisorteams", f"{CUSTOM} supervisors"):
        for item in cast(stage, name, path):
            stage.ask("DELETE", f"{path}/{item['metadata']['name']}")


def explore(stage: Stage, point: Point) -> str:
    """The name of a point that leads to the same end."""
    for _ in range(TRIES):
        if tell_disturbed(stage, point):
            return point.name
    assert point.what.endswith("/status"), f"{point.name}: never reached"
    return f"{point.name}: not reached, written as one with another"


class Theatre:
    """Some stages, and as many hands: whatever is submitted is told on a stage that is free."""

    def __init__(self, stages: list[Stage], pool: ThreadPoolExecutor) -> None:
        self._free: queue.SimpleQueue[Stage] = queue.SimpleQueue()
        self._pool = pool
        for stage in stages:
            self._free.put(stage)

    def submit(self, telling: Callable[[Stage], T]) -> Future[T]:
        return self._pool.submit(self._tell, telling)

    def _tell(self, telling: Callable[[Stage], T]) -> T:
        stage = self._free.get()
        try:
            return telling(stage)
        except Exception:
            stage.operator.kill()
            stage.operator.start().ready()
            raise
        finally:
            self._free.put(stage)


@contextmanager
def open_theatre(kubectl: Kubectl, access: Path, folder: Path, stages: int) -> Iterator[Theatre]:
    with ExitStack() as stack:
        spaces = [Kubectl(kubectl.cluster, f"{kubectl.namespace}-{n}") for n in range(stages)]
        opened = [
            stack.enter_context(open_stage(space, access, folder / space.namespace))
            for space in spaces
        ]
        yield Theatre(opened, stack.enter_context(ThreadPoolExecutor(stages)))
        for stage in opened:
            stage.look_back()
