"""The status is written where it differs, from the view it was planned from; then the Events."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from supervisor_operator.api.v1alpha1.meta import Phase
from supervisor_operator.api.v1alpha1.supervisor_status import SupervisorStatus
from supervisor_operator.core.events import Note
from supervisor_operator.core.words import EventReason
from supervisor_operator.errors import ConflictError, ForbiddenError, TransientError
from supervisor_operator.kube.cluster import EVENTS, SUPERVISORS, Object
from supervisor_operator.kube.report import (
    FOLD_SECONDS,
    NOTE_LIMIT,
    Storyteller,
    dump_status,
    write_status,
)
from tests.support.builders import a_supervisor
from tests.support.fake_cluster import FakeCluster

pytestmark = pytest.mark.looptime

START = datetime(2026, 1, 1, tzinfo=UTC)
STATUS = dump_status(SupervisorStatus(phase=Phase.SPAWNING, next_restart_time=START))
ACTIVE = Note(EventReason.ACTIVE, "Pod hello-r1 is ready")
SILENT = Note(EventReason.UNRESPONSIVE, "4 beats are missing", warning=True)


@dataclass(slots=True)
class World:
    cluster: FakeCluster = field(default_factory=FakeCluster)
    now: float = 0.0
    item: Object = field(init=False)
    teller: Storyteller = field(init=False)

    def __post_init__(self) -> None:
        self.item = self.cluster.add(SUPERVISORS, a_supervisor() | {"status": {}})
        self.teller = Storyteller(
            self.cluster, "me", lambda: self.now, lambda: START + timedelta(seconds=self.now)
        )

    async def write(self, status: Object) -> Object | None:
        return await write_status(self.cluster, SUPERVISORS, self.item, status)

    async def tell(self, *notes: Note) -> None:
        await self.teller.tell(self.item, notes)

    @property
    def events(self) -> list[Object]:
        return [item for place, item in self.cluster.objects.items() if place[0] == "events"]


@pytest.fixture
def world() -> World:
    return World()


def counts(world: World) -> list[int]:
    return [event.get("series", {}).get("count", 1) for event in world.events]


async def test_a_status_that_differs_is_written_and_nothing_else_is(world: World) -> None:
    written = await world.write(STATUS)
    assert written
    assert written["status"] == STATUS
    assert written["spec"] == world.item["spec"]
    assert world.cluster.calls == [("replace_status", "supervisors", "hello")]


async def test_an_equal_status_is_not_written(world: World) -> None:
    stored = await world.write(STATUS)
    assert stored
    world.item = stored
    world.cluster.calls.clear()
    same = SupervisorStatus.model_validate(stored["status"])
    assert await world.write(dump_status(same)) is None
    assert world.cluster.calls == []


async def test_a_stale_view_never_overwrites_a_newer_one(world: World) -> None:
    patch: dict[str, Any] = {"spec": {"description": "edited meanwhile"}}
    world.cluster.change(SUPERVISORS, "default", "hello", patch)
    with pytest.raises(ConflictError):
        await world.write(STATUS)
    assert world.cluster.objects["supervisors", "default", "hello"]["status"] == {}


async def test_an_event_says_what_of_whom_and_by_whom(world: World) -> None:
    await world.tell(SILENT)
    (event,) = world.events
    assert (event["reason"], event["note"]) == ("Unresponsive", "4 beats are missing")
    assert (event["type"], event["reportingInstance"]) == ("Warning", "me")
    assert event["regarding"]["uid"] == world.item["metadata"]["uid"]
    assert event["eventTime"] == "2026-01-01T00:00:00.000000Z"


async def test_an_event_is_no_longer_than_the_server_takes(world: World) -> None:
    await world.tell(Note(EventReason.FAILED, "x" * 5000))
    assert len(world.events[0]["note"]) == NOTE_LIMIT


async def test_what_is_told_again_raises_the_count_of_the_first(world: World) -> None:
    for _ in range(3):
        await world.tell(SILENT)
        world.now += FOLD_SECONDS - 1
    await world.tell(ACTIVE)
    assert counts(world) == [3, 1]
    last = START + timedelta(seconds=2 * (FOLD_SECONDS - 1))
    assert world.events[0]["series"]["lastObservedTime"] == last.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def test_after_a_while_the_same_story_is_a_new_one(world: World) -> None:
    await world.tell(SILENT)
    world.now += FOLD_SECONDS
    await world.tell(SILENT)
    assert counts(world) == [1, 1]


async def test_another_agents_story_is_its_own(world: World) -> None:
    await world.tell(SILENT)
    world.item = world.cluster.add(SUPERVISORS, a_supervisor("other"))
    await world.tell(SILENT)
    assert [event["regarding"]["name"] for event in world.events] == ["hello", "other"]


async def test_an_event_somebody_removed_is_told_anew(world: World) -> None:
    await world.tell(SILENT)
    world.cluster.remove(EVENTS, "default", world.events[0]["metadata"]["name"])
    await world.tell(SILENT)
    await world.tell(SILENT)
    assert counts(world) == [2]


async def test_an_event_that_is_refused_stops_neither_the_pass_nor_the_next_event(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.cluster.fail("create", EVENTS, ForbiddenError("namespace is terminating", status=403))
    await world.tell(SILENT, ACTIVE)
    assert [event["reason"] for event in world.events] == ["Active"]
    assert "event Unresponsive was not written: namespace is terminating" in caplog.text


async def test_an_event_that_was_lost_is_told_the_next_time(world: World) -> None:
    world.cluster.fail("create", EVENTS, TransientError("503"))
    await world.tell(SILENT)
    await world.tell(SILENT)
    assert counts(world) == [1]


async def test_memory_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("supervisor_operator.kube.report.REMEMBERED", 3)
    for number in range(10):
        await world.tell(Note(EventReason.FAILED, f"story {number}"))
    assert len(world.teller._told) <= 3
    assert len(world.events) == 10
