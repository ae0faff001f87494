"""The board shows what passes found, and tells its readers what changed, in order."""

from __future__ import annotations

import asyncio
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from supervisor_operator.api.v1alpha1.meta import (
    Condition,
    ConditionStatus,
    Health,
    OperatingMode,
    Phase,
)
from supervisor_operator.api.v1alpha1.supervisor import SupervisorSpec
from supervisor_operator.api.v1alpha1.supervisor_status import SupervisorStatus
from supervisor_operator.core.actions import DeleteHeartbeat
from supervisor_operator.core.observed import Observed
from supervisor_operator.core.plan import Plan
from supervisor_operator.core.states import State
from supervisor_operator.errors import TransientError
from supervisor_operator.kube.cluster import Object
from supervisor_operator.snapshot import Event, SnapshotBoard
from supervisor_operator.subscription import Gap, Subscription

pytestmark = pytest.mark.looptime

START = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ("default", "hello")


def an_item(name: str = "hello", uid: str = "uid-1", generation: int = 1, **more: Any) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": uid, "generation": generation}
    return {"metadata": metadata, "spec": {}, "status": {}} | more


def a_plan(phase: Phase, health: Health = Health.UNKNOWN, reason: str = "", **more: Any) -> Plan:
    ready = Condition(type="Ready", status=ConditionStatus.TRUE, reason=reason)
    status = SupervisorStatus(phase=phase, health=health, conditions=[ready], **more)
    return Plan(actions=(), status=status, notes=(), state=State.RUNNING)


SPAWNING = a_plan(Phase.SPAWNING, reason="Starting")
ACTIVE = a_plan(Phase.ACTIVE, Health.HEALTHY, "HeartbeatFresh")
SILENT = a_plan(Phase.ACTIVE, Health.UNRESPONSIVE, "HeartbeatsMissed")
BACK_OFF = a_plan(Phase.SPAWNING, reason="BackOff")
UPDATING = a_plan(Phase.SPAWNING, reason="Updating")
ASKED_FOR = a_plan(Phase.SPAWNING, reason="RestartRequested")
PAUSED = a_plan(Phase.PAUSED, reason="Paused")
FAILED = a_plan(Phase.FAILED, reason="RestartBudgetExhausted")
FINISHED = a_plan(Phase.TERMINATED, reason="Succeeded")


def an_observed(name: str = "hello") -> Observed:
    return Observed(
        name=name,
        namespace="default",
        uid="uid-1",
        generation=1,
        spec=SupervisorSpec(),
        status=SupervisorStatus(),
        template_hash="abc",
        mode=OperatingMode.RUNNING,
    )


@pytest.fixture
def board() -> SnapshotBoard:
    return SnapshotBoard(lambda: START)


def waiting(subscription: Subscription[Event]) -> list[str]:
    """The events a reader would get now, by their words."""
    found = list(subscription._waiting)
    subscription._waiting.clear()
    return ["gap" if isinstance(one, Gap) else one.type.value for one in found]


def told(board: SnapshotBoard, *plans: Plan) -> list[str]:
    """The words of all passes but for the first and for the end of each."""
    board.passed(an_item(), plans[0], 0.1)
    reader = board.subscribe()
    for plan in plans[1:]:
        board.passed(an_item(), plan, 0.1)
    return [word for word in waiting(reader) if word != "ReconciliationComplete"]


def test_the_snapshot_shows_what_is_wanted_what_is_and_how_it_was_found_out() -> None:
    times = iter(START + timedelta(seconds=seconds) for seconds in range(10))
    board = SnapshotBoard(lambda: next(times))
    plan = a_plan(Phase.ACTIVE, Health.HEALTHY, "PodReady", pod_name="hello-r2", run=2, restarts=1)
    board.passed(an_item(spec={"operatingMode": "Paused"}, generation=7), plan, 0.1)
    board.passed(an_item(spec={"operatingMode": "Running"}, generation=8), plan, 0.25)
    state = board.snapshot().supervisors[KEY]
    assert (state.desired.mode, state.desired.generation) == (OperatingMode.RUNNING, 8)
    actual = state.actual
    assert (actual.phase, actual.health, actual.reason) == ("ACTIVE", "HEALTHY", "PodReady")
    assert (actual.pod, actual.run, actual.restarts) == ("hello-r2", 2, 1)
    assert state.passes.count == 2
    assert state.passes.time == START + timedelta(seconds=1)
    assert state.passes.seconds == 0.25


def test_a_snapshot_never_changes_and_newer_ones_have_higher_versions(
    board: SnapshotBoard,
) -> None:
    empty = board.snapshot()
    board.passed(an_item(), SPAWNING, 0.1)
    first = board.snapshot()
    board.passed(an_item(), ACTIVE, 0.1)
    board.failed(KEY, TransientError("no answer"))
    second = board.snapshot()
    board.gone(KEY)
    assert empty.version < first.version < second.version < board.snapshot().version
    assert (len(empty.supervisors), len(board.snapshot().supervisors)) == (0, 0)
    assert first.supervisors[KEY].actual.phase is Phase.SPAWNING
    assert second.supervisors[KEY].actual.phase is Phase.ACTIVE
    with pytest.raises(TypeError):
        first.supervisors[KEY] = second.supervisors[KEY]  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        first.version = 9  # type: ignore[misc]


def test_without_news_a_snapshot_costs_nothing(board: SnapshotBoard) -> None:
    board.passed(an_item(), SPAWNING, 0.1)
    assert board.snapshot() is board.snapshot()


def test_a_failed_pass_keeps_what_was_known_and_says_why(board: SnapshotBoard) -> None:
    board.passed(an_item(), ACTIVE, 0.1)
    board.failed(KEY, TransientError("no answer"))
    state = board.snapshot().supervisors[KEY]
    assert state.actual.phase is Phase.ACTIVE
    assert (state.passes.count, state.passes.error) == (2, "no answer")
    board.passed(an_item(), ACTIVE, 0.1)
    assert board.snapshot().supervisors[KEY].passes.error == ""


def test_the_last_action_stays_until_the_next_one(board: SnapshotBoard) -> None:
    board.passed(an_item(), SPAWNING, 0.1)
    assert board.snapshot().supervisors[KEY].last_action is None
    board.acted(an_observed(), DeleteHeartbeat("hello-r1", "uid-1", "its pod is finished"))
    board.acted(an_observed("other"), DeleteHeartbeat("other-r1", "uid-2", "of another"))
    for plan in (ACTIVE, ACTIVE):
        board.passed(an_item(), plan, 0.1)
    action = board.snapshot().supervisors[KEY].last_action
    assert action
    assert (action.kind, action.reason) == ("DeleteHeartbeat", "its pod is finished")


def test_an_action_of_a_pass_that_failed_is_shown_too(board: SnapshotBoard) -> None:
    board.passed(an_item(), SPAWNING, 0.1)
    board.acted(an_observed(), DeleteHeartbeat("hello-r1", "uid-1", "its pod is finished"))
    board.failed(KEY, TransientError("the status was not written"))
    assert board.snapshot().supervisors[KEY].last_action


def test_a_mode_that_nobody_knows_is_shown_as_the_default(board: SnapshotBoard) -> None:
    board.passed(an_item(spec={"operatingMode": "Dreaming"}), SPAWNING, 0.1)
    assert board.snapshot().supervisors[KEY].desired.mode is OperatingMode.RUNNING


def test_a_life_as_a_reader_hears_it(board: SnapshotBoard) -> None:
    reader = board.subscribe()
    board.passed(an_item(), SPAWNING, 0.1)
    assert waiting(reader) == ["SupervisorAdded", "ReconciliationComplete"]
    board.passed(an_item(), ACTIVE, 0.1)
    assert waiting(reader) == [
        "SupervisorStateChanged",
        "SupervisorConnected",
        "ReconciliationComplete",
    ]
    board.passed(an_item(), ACTIVE, 0.1)
    assert waiting(reader) == ["ReconciliationComplete"]
    board.passed(an_item(generation=2), SILENT, 0.1)
    assert waiting(reader) == [
        "SupervisorUpdated",
        "SupervisorStateChanged",
        "SupervisorDisconnected",
        "ReconciliationComplete",
    ]
    board.failed(KEY, TransientError("no answer"))
    assert waiting(reader) == ["ReconciliationFailed"]
    board.gone(KEY)
    board.gone(KEY)
    assert waiting(reader) == ["SupervisorRemoved"]


CHANGED, CONNECTED, DISCONNECTED = (
    "SupervisorStateChanged",
    "SupervisorConnected",
    "SupervisorDisconnected",
)


@pytest.mark.parametrize(
    ("plans", "words"),
    [
        ([ACTIVE, SILENT, ACTIVE], [CHANGED, DISCONNECTED, CHANGED, CONNECTED]),
        ([ACTIVE, BACK_OFF], [CHANGED, DISCONNECTED]),
        ([ACTIVE, FAILED], [CHANGED, DISCONNECTED]),
        ([ACTIVE, SILENT, BACK_OFF, FAILED], [CHANGED, DISCONNECTED, CHANGED, CHANGED]),
        ([SPAWNING, FAILED], [CHANGED]),
        ([ACTIVE, PAUSED, ACTIVE], [CHANGED, CHANGED, CONNECTED]),
        ([ACTIVE, UPDATING, ACTIVE], [CHANGED, CHANGED, CONNECTED]),
        ([ACTIVE, ASKED_FOR], [CHANGED]),
        ([ACTIVE, FINISHED], [CHANGED]),
    ],
    ids=[
        "silent and back",
        "crashed",
        "given up",
        "silent, restarted, given up: lost once",
        "never came up",
        "paused on purpose",
        "replaced on purpose",
        "restarted as asked for",
        "done",
    ],
)
def test_only_what_nobody_asked_for_is_a_disconnection(
    board: SnapshotBoard, plans: list[Plan], words: list[str]
) -> None:
    assert told(board, *plans) == words


def test_after_a_start_only_what_changed_meanwhile_is_a_change(board: SnapshotBoard) -> None:
    reader = board.subscribe()
    stored = {"phase": "ACTIVE", "health": "HEALTHY"}
    board.passed(an_item(status=stored), ACTIVE, 0.1)
    assert waiting(reader) == ["SupervisorAdded", "ReconciliationComplete"]
    board.passed(an_item("other", status=stored), FAILED, 0.1)
    assert waiting(reader) == ["SupervisorAdded", CHANGED, DISCONNECTED, "ReconciliationComplete"]


def test_a_namesake_is_another_supervisor(board: SnapshotBoard) -> None:
    board.passed(an_item(uid="uid-1"), ACTIVE, 0.1)
    reader = board.subscribe()
    board.passed(an_item(uid="uid-2"), SPAWNING, 0.1)
    assert waiting(reader) == ["SupervisorRemoved", "SupervisorAdded", "ReconciliationComplete"]
    assert board.snapshot().supervisors[KEY].passes.count == 1
    assert board.phases() == {"ACTIVE": 0, "SPAWNING": 1}


def test_a_first_pass_that_fails_is_told_without_a_state(board: SnapshotBoard) -> None:
    reader = board.subscribe()
    board.failed(KEY, TransientError("no answer"))
    (event,) = reader._waiting
    assert isinstance(event, Event)
    assert (event.state, event.error, event.version) == (None, "no answer", 1)


def test_an_event_is_in_every_snapshot_of_its_version(board: SnapshotBoard) -> None:
    reader = board.subscribe()
    for plan in (SPAWNING, ACTIVE, SILENT):
        board.passed(an_item(), plan, 0.1)
        seen = board.snapshot()
        for event in reader._waiting:
            assert isinstance(event, Event)
            assert event.version == seen.version
            assert event.state == seen.supervisors[KEY]
        reader._waiting.clear()


def test_the_fleet_is_counted_as_it_changes(board: SnapshotBoard) -> None:
    for name in "abc":
        board.passed(an_item(name), SPAWNING, 0.1)
    board.passed(an_item("a"), ACTIVE, 0.1)
    board.passed(an_item("b"), SILENT, 0.1)
    board.failed(("default", "b"), TransientError("no answer"))
    board.gone(("default", "c"))
    assert board.phases() == {"SPAWNING": 0, "ACTIVE": 2}
    assert board.healths() == {"UNKNOWN": 0, "HEALTHY": 1, "UNRESPONSIVE": 1}


async def test_a_slow_reader_gets_a_gap_for_what_it_missed_and_then_the_rest(
    board: SnapshotBoard,
) -> None:
    reader = board.subscribe(size=2)
    for number in range(1, 6):
        board.passed(an_item(generation=number), SPAWNING, 0.1)
    missed_at = board.snapshot().version
    first, second, gap = [await anext(reader) for _ in range(3)]
    assert isinstance(first, Event)
    assert isinstance(second, Event)
    assert (first.type, second.type) == ("SupervisorAdded", "ReconciliationComplete")
    assert gap == Gap(missed_at)
    board.gone(KEY)
    after = await anext(reader)
    assert isinstance(after, Event)
    assert (after.type, after.version) == ("SupervisorRemoved", missed_at + 1)


async def test_a_slow_reader_does_not_slow_the_others(board: SnapshotBoard) -> None:
    slow, quick = board.subscribe(size=1), board.subscribe()
    for _ in range(100):
        board.passed(an_item(), SPAWNING, 0.1)
    assert waiting(slow) == ["SupervisorAdded", "gap"]
    assert waiting(quick).count("ReconciliationComplete") == 100


async def test_a_reader_waits_for_news(board: SnapshotBoard) -> None:
    reader = board.subscribe()
    asyncio.get_running_loop().call_later(60, board.passed, an_item(), SPAWNING, 0.1)
    event = await anext(reader)
    assert isinstance(event, Event)
    assert event.type == "SupervisorAdded"
    assert asyncio.get_running_loop().time() == 60


async def test_a_reader_that_left_hears_nothing_more(board: SnapshotBoard) -> None:
    reader, other = board.subscribe(), board.subscribe()
    board.passed(an_item(), SPAWNING, 0.1)
    reader.close()
    board.passed(an_item(), ACTIVE, 0.1)
    left = [one async for one in reader]
    assert len(left) == 2
    assert board._subscriptions == {other}
    assert len(waiting(other)) == 5


async def test_readers_end_when_the_board_does(board: SnapshotBoard) -> None:
    reader = board.subscribe()
    asyncio.get_running_loop().call_later(60, board.close)
    assert [one async for one in reader] == []
