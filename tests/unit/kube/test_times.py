"""When a fact about a pod was first seen: once, by our own clock, minus the time we were blind."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from supervisor_operator.core.observed import PodView, Sightings
from supervisor_operator.kube.times import PodTimes

POD = PodView("hello-r1", "default", "pod-1", "owner", 1)
RUNNING = replace(POD, running=True)


@dataclass(slots=True)
class Watcher:
    now: float = 1000.0
    times: PodTimes = field(init=False)

    def __post_init__(self) -> None:
        self.times = PodTimes(lambda: self.now)

    def sees(self, pod: PodView, *, then_waits: float = 0.0) -> None:
        self.times.note(pod)
        self.now += then_waits

    def sightings(self) -> Sightings:
        return self.times.sightings("pod-1", self.now)


def test_a_pod_nobody_saw_has_no_times() -> None:
    assert Watcher().sightings() == Sightings()


def test_each_fact_has_the_time_it_was_first_seen() -> None:
    watcher = Watcher()
    watcher.sees(POD, then_waits=1)
    watcher.sees(RUNNING, then_waits=10)
    watcher.sees(RUNNING)
    watcher.sees(replace(RUNNING, ended_by="HeartbeatsMissed"), then_waits=100)
    watcher.sees(replace(RUNNING, terminating=True), then_waits=1000)
    assert watcher.sightings() == Sightings(
        created=1111, running=1110, ended_by=1100, terminating=1000
    )


def test_a_fact_that_is_no_longer_so_was_seen_all_the_same() -> None:
    watcher = Watcher()
    watcher.sees(RUNNING, then_waits=5)
    watcher.sees(POD, then_waits=5)
    watcher.sees(RUNNING)
    assert watcher.sightings().running == 10


def test_no_time_limit_ran_on_while_we_were_blind() -> None:
    watcher = Watcher()
    pod = replace(RUNNING, ended_by="HeartbeatsMissed", terminating=True)
    watcher.sees(pod, then_waits=100)
    watcher.times.shift(70)
    found = watcher.sightings()
    assert (found.running, found.terminating, found.ended_by) == (30, 30, 30)


def test_being_blind_moves_nothing_beyond_now_and_invents_nothing() -> None:
    watcher = Watcher()
    watcher.sees(RUNNING, then_waits=10)
    watcher.times.shift(3600)
    found = watcher.sightings()
    assert (found.running, found.terminating, found.ended_by) == (0, None, None)


def test_a_forgotten_pod_is_seen_anew() -> None:
    watcher = Watcher()
    watcher.sees(RUNNING, then_waits=100)
    watcher.times.forget("pod-1")
    watcher.times.forget("pod-1")
    watcher.sees(RUNNING)
    assert watcher.sightings().running == 0


@pytest.mark.parametrize(
    ("before", "facts", "expected"),
    [
        (POD, {}, "known"),
        (POD, {"resource_version": "8"}, "known"),
        (POD, {"node": "node-1"}, "known"),
        (POD, {"node": "node-1", "running": True}, "news"),
        (POD, {"node": "node-1", "waiting": "ErrImagePull"}, "news"),
        (POD, {"node": "node-1", "phase": "Failed"}, "news"),
        (POD, {"order": 2}, "news"),
        (RUNNING, {"ready": True}, "news"),
        (RUNNING, {"node": "node-1"}, "news"),
    ],
)
def test_a_change_is_news_where_a_pass_would_see_another_pod(
    before: PodView, facts: dict[str, Any], expected: str
) -> None:
    times = Watcher().times
    assert times.note(before), "nobody saw it before"
    assert times.note(replace(before, **facts)) is (expected == "news")
    assert not times.note(replace(before, **facts))
