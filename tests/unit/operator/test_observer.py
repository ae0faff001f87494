"""What passes tell: every observer hears it, and the metrics count it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from supervisor_operator.api.v1alpha1.supervisor_status import SupervisorStatus
from supervisor_operator.core.events import Note
from supervisor_operator.core.plan import Plan
from supervisor_operator.core.states import State
from supervisor_operator.core.words import EventReason
from supervisor_operator.errors import TransientError
from supervisor_operator.kube.cluster import Object
from supervisor_operator.observer import FanOut, MetricsObserver
from supervisor_operator.snapshot import SnapshotBoard
from supervisor_operator.telemetry.metrics import Metrics

KEY = ("default", "hello")
ITEM: Object = {
    "metadata": {"name": "hello", "namespace": "default", "uid": "uid-1"},
    "spec": {},
    "status": {},
}


def a_plan(*notes: Note, overdue: float | None = None) -> Plan:
    return Plan((), SupervisorStatus(), notes, State.RUNNING, overdue=overdue)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("test")


def sample(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"supervisor_operator_{name}", labels)


def test_every_observer_hears_of_every_pass(metrics: Metrics) -> None:
    board = SnapshotBoard(lambda: datetime(2026, 1, 1, tzinfo=UTC))
    both = FanOut(MetricsObserver(metrics), board)
    both.passed(ITEM, a_plan(), 0.1)
    both.failed(KEY, TransientError("no answer"))
    assert board.snapshot().supervisors[KEY].passes.count == 2
    both.gone(KEY)
    assert not board.snapshot().supervisors
    for result in ("ok", "TransientError", "gone"):
        assert sample(metrics, "reconcile_total", kind="Supervisor", result=result) == 1


def test_passes_over_teams_are_counted_as_such(metrics: Metrics) -> None:
    observer = MetricsObserver(metrics)
    observer.team_passed(0.5)
    observer.failed((*KEY, "SupervisorTeam"), TransientError("no answer"))
    for result in ("ok", "TransientError"):
        assert sample(metrics, "reconcile_total", kind="SupervisorTeam", result=result) == 1
    assert sample(metrics, "reconcile_seconds_sum", kind="SupervisorTeam") == 0.5


def test_a_verdict_is_counted_by_its_cause_and_timed_from_the_deadline(metrics: Metrics) -> None:
    note = Note(EventReason.UNRESPONSIVE, "silent", cause="HeartbeatsMissed")
    MetricsObserver(metrics).passed(ITEM, a_plan(note, overdue=0.25), 0.5)
    assert sample(metrics, "verdicts_total", reason="HeartbeatsMissed") == 1
    assert sample(metrics, "detection_latency_seconds_sum") == 0.75


def test_a_restart_is_counted_by_its_reason_and_other_events_are_not(metrics: Metrics) -> None:
    notes = (
        Note(EventReason.RESTARTED, "replaced", cause="AgentFailed"),
        Note(EventReason.ACTIVE, "beats"),
    )
    MetricsObserver(metrics).passed(ITEM, a_plan(*notes), 0.5)
    assert sample(metrics, "restarts_total", reason="AgentFailed") == 1
    assert sample(metrics, "verdicts_total", reason="AgentFailed") is None
