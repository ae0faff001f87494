"""The operator dies before and after each of its writes; whoever follows comes to the same end.

Each story is told once undisturbed: that gives the writes, and the end to compare with. Then it is
told again for every write, before it reaches the server and before its answer is known, with a
SIGKILL there and a new operator afterwards.
"""

from __future__ import annotations

import json
import queue
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.builders import a_supervisor
from tests.support.kubectl import Kubectl
from tests.support.proxy_server import Write
from tests.support.stage import CUSTOM, Stage, open_stage

STAGES = 3
TRIES = 2
WHEN = ("before", "after")
NONE = {"source": "None"}
BEAT = {"intervalSeconds": 1, "missedThreshold": 1}
QUICK = {"delaySeconds": 1, "maxDelaySeconds": 1}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
Json = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Story:
    """`prepare` leads up to it, `act` is what happens, `finish` what it takes to reach the end."""

    name: str
    act: Callable[[Stage, str], None]
    finish: Callable[[Stage, str], None]
    prepare: Callable[[Stage, str], None] = lambda _stage, _name: None


def spawn(stage: Stage, name: str, **spec: Any) -> None:
    stage.ask("POST", f"{CUSTOM} supervisors", a_supervisor(name, **spec))


def plain(**spec: Any) -> Callable[[Stage, str], None]:
    def prepare(stage: Stage, name: str) -> None:
        spawn(stage, name, heartbeat=NONE, **spec)
        stage.until_status(name, phase="ACTIVE")

    return prepare


def beating(stage: Stage, name: str) -> None:
    spawn(stage, name, heartbeat=BEAT, restart=QUICK)
    stage.join(f"{name}-r1")
    stage.until_status(name, phase="ACTIVE", health="HEALTHY")


def forget_rights(stage: Stage, _name: str) -> None:
    """As in a namespace that never had an agent."""
    stage.operator.kill()
    for kind in ("rolebindings", "roles"):
        stage.ask("DELETE", f"{RBAC} {kind}/supervision-beats")
    stage.operator.start().ready()


def become_active(run: int) -> Callable[[Stage, str], None]:
    def finish(stage: Stage, name: str) -> None:
        stage.until_status(name, phase="ACTIVE", podName=f"{name}-r{run}")

    return finish


def beat_and_become_active(run: int) -> Callable[[Stage, str], None]:
    def finish(stage: Stage, name: str) -> None:
        stage.join(f"{name}-r{run}")
        stage.until_status(name, phase="ACTIVE", health="HEALTHY", podName=f"{name}-r{run}")

    return finish


def reach(phase: str) -> Callable[[Stage, str], None]:
    return lambda stage, name: stage.until_status(name, phase=phase)


def exit_with_3(stage: Stage, name: str) -> None:
    labels = {"metadata": {"labels": {"fake.test/exit-code": "3"}}}
    stage.ask("PATCH", f"/api/v1 pods/{name}-r1", labels)


def delete(stage: Stage, name: str) -> None:
    stage.ask("DELETE", f"{CUSTOM} supervisors/{name}")


def be_gone(stage: Stage, name: str) -> None:
    stage.until(lambda: not end_of(stage, name)["pods"], lambda: f"{name}-r1 is still there")


STORIES = (
    Story(
        "freeze",
        lambda stage, name: stage.fleet.freeze(f"{name}-r1"),
        beat_and_become_active(2),
        beating,
    ),
    Story(
        "create",
        lambda stage, name: spawn(stage, name, heartbeat=BEAT),
        beat_and_become_active(1),
        forget_rights,
    ),
    Story("crash and restart", exit_with_3, become_active(2), plain(restart=QUICK)),
    Story(
        "template change",
        lambda stage, name: stage.edit(name, agent={"image": "localhost/agent:2"}),
        become_active(2),
        plain(),
    ),
    Story(
        "stop",
        lambda stage, name: stage.edit(name, operatingMode="Stopped"),
        reach("TERMINATED"),
        plain(),
    ),
    Story("delete", delete, be_gone, plain()),
    Story(
        "budget exhausted", exit_with_3, reach("FAILED"), plain(restart=QUICK | {"maxRestarts": 0})
    ),
)
DELETE = [story.name for story in STORIES].index("delete")

MASKED = {
    *("podUID", "uid", "nodeName", "startTime", "finishedAt", "lastTransitionTime"),
    *("lastRestartTime", "nextRestartTime", "lastHeartbeatTime", "healthMetrics"),
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+]+Z?")


def masked(value: Any, name: str) -> Any:
    """Without what differs from one telling to the next."""
    if isinstance(value, dict):
        return {
            key.replace(name, "NAME"): "…" if key in MASKED else masked(one, name)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [masked(one, name) for one in value]
    return TIME.sub("…", value.replace(name, "NAME")) if isinstance(value, str) else value


def end_of(stage: Stage, name: str) -> Json:
    """All that is left of a Supervisor: its status, its pods and its Heartbeats."""
    chosen = f"?labelSelector=supervision.dev/supervisor%3D{name}"
    pods = stage.ask("GET", f"/api/v1 pods{chosen}")["items"]
    beats = stage.ask("GET", f"{CUSTOM} heartbeats{chosen}")["items"]
    found = {
        "status": stage.supervisor(name).get("status"),
        "pods": {
            pod["metadata"]["name"]: [pod["status"]["phase"], pod["metadata"]["annotations"]]
            for pod in pods
        },
        "heartbeats": sorted(beat["metadata"]["name"] for beat in beats),
    }
    end: Json = masked(found, name)
    return end


def work(writes: list[Write], name: str) -> Counter[str]:
    """What was done to whom, statuses left out: they are compared as a part of the end."""
    return Counter(
        told(write, name)
        for write in writes
        if write.status and write.status < 300 and not write.path.endswith("/status")
    )


def told(write: Write, name: str) -> str:
    path = write.path.partition("/namespaces/")[2].partition("/")[2]
    return f"{write.verb} {path.replace(name, 'NAME')}"


@dataclass(frozen=True, slots=True)
class Telling:
    writes: tuple[str, ...]
    work: Counter[str]
    end: Json


def tell(stage: Stage, story: Story) -> Telling:
    """Undisturbed."""
    with beginning(stage, story) as name:
        stage.until_quiet()
        stage.base = len(stage.proxy.writes)
        story.act(stage, name)
        story.finish(stage, name)
        stage.until_quiet()
        writes = stage.writes()
        words = tuple(told(one, name) for one in writes)
        return Telling(words, work(writes, name), end_of(stage, name))


def tell_with_a_kill(stage: Stage, point: Point, wanted: Telling) -> bool:
    """Tells whether the operator died where it should: two statuses may be written as one."""
    story, where = point.story, point.name(wanted)
    with beginning(stage, story) as name:
        stage.kill_at(point.number, point.when)
        story.act(stage, name)
        story.finish(stage, name)
        stage.until(
            lambda: end_of(stage, name) == wanted.end,
            lambda: f"{where}: {difference(wanted.end, end_of(stage, name))}",
        )
        assert work(stage.writes(), name) == wanted.work, where
        return stage.killed.is_set()


def difference(wanted: Json, found: Json) -> str:
    return (
        f"wanted {json.dumps(wanted, sort_keys=True)}\nfound  {json.dumps(found, sort_keys=True)}"
    )


@contextmanager
def beginning(stage: Stage, story: Story) -> Iterator[str]:
    """A Supervisor of a new name, ready for the story; gone with the context."""
    stage.told += 1
    name = f"s{stage.told}"
    try:
        story.prepare(stage, name)
        stage.base = len(stage.proxy.writes)
        yield name
    finally:
        for run in (1, 2):
            with suppress(KeyError):
                stage.fleet.leave(f"{name}-r{run}")
        delete(stage, name)


@dataclass(frozen=True, slots=True)
class Point:
    story: Story
    number: int
    when: str

    def name(self, telling: Telling) -> str:
        write = telling.writes[self.number - 1]
        return f"{self.story.name}: {self.when} write {self.number}, {write}"


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
            stage.killed = threading.Event()
            stage.operator.kill()
            stage.operator.start().ready()
            raise
        finally:
            self._free.put(stage)


@contextmanager
def open_theatre(kubectl: Kubectl, access: Path, folder: Path) -> Iterator[Theatre]:
    with ExitStack() as stack:
        spaces = [
            Kubectl(kubectl.cluster, f"{kubectl.namespace}-{number}") for number in range(STAGES)
        ]
        stages = [
            stack.enter_context(open_stage(space, access, folder / space.namespace))
            for space in spaces
        ]
        yield Theatre(stages, stack.enter_context(ThreadPoolExecutor(STAGES)))


def explore(stage: Stage, point: Point, wanted: Telling) -> str:
    """The name of a crash point that leads to the same end."""
    for _ in range(TRIES):
        if tell_with_a_kill(stage, point, wanted):
            return point.name(wanted)
    assert "/status" in wanted.writes[point.number - 1], f"{point.name(wanted)}: never reached"
    return f"{point.name(wanted)}: not reached, written as one with another"


@pytest.mark.timeout(600)
def test_every_crash_point_leads_to_the_same_end(
    fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path
) -> None:
    with open_theatre(fake_kubectl, operator_access, tmp_path) as theatre:
        told = [theatre.submit(partial(tell, story=story)) for story in STORIES]
        references = [one.result() for one in told]
        explored = [
            theatre.submit(partial(explore, point=Point(story, number, when), wanted=wanted))
            for story, wanted in zip(STORIES, references, strict=True)
            for number in range(1, len(wanted.writes) + 1)
            for when in WHEN
        ]
        errors = [error for one in explored if isinstance(error := one.exception(), Exception)]
        if errors:
            raise ExceptionGroup("crash points that lead elsewhere", errors)
    names = [one.result() for one in explored]
    print(f"{len(names)} crash points", *names, sep="\n")
    assert references[DELETE].writes == (), "the garbage collector deletes, the operator does not"
    reached = [name for name in names if "not reached" not in name]
    assert len(reached) > 2 * len(STORIES)
