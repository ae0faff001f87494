"""What each state shows, row by row of the table in the design, and how kstatus reads it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from supervisor_operator.core.observed import Refusal, RefusalKind
from supervisor_operator.core.states import State
from supervisor_operator.kube.report import dump_status
from tests.support.kstatus import kstatus
from tests.support.sim import Sim
from tests.unit.core.test_edges import beating, running

ROWS: list[tuple[str, Callable[[], Sim], str, str, str, str]] = [
    ("new, unseen", Sim, "-", "-", "-", "InProgress"),
    ("starting", lambda: Sim().settle(), "Unknown/Starting", "True/Starting", "-", "InProgress"),
    ("running", beating, "True/HeartbeatFresh", "-", "-", "Current"),
    ("running without beats", running, "True/PodReady", "-", "-", "Current"),
    (
        "unresponsive, remedy coming",
        lambda: beating().silent(120),
        "False/HeartbeatsMissed",
        "True/Restarting",
        "-",
        "InProgress",
    ),
    (
        "unresponsive, MarkOnly",
        lambda: beating(restart={"onUnresponsive": "MarkOnly"}).silent(120),
        "False/HeartbeatsMissed",
        "-",
        "True/HeartbeatsMissed",
        "Failed",
    ),
    (
        "unresponsive, RelayDown",
        lambda: beating().change(relay_running=False).silent(125, relay=False),
        "False/RelayDown",
        "-",
        "True/RelayDown",
        "Failed",
    ),
    (
        "remedy withheld",
        lambda: beating().change(node_lost=True).silent(125, relay=False),
        "False/NodeUnreachable",
        "True/RemediationHeld",
        "-",
        "InProgress",
    ),
    (
        "back-off",
        lambda: running().exit(3),
        "False/BackOff",
        "True/Restarting",
        "-",
        "InProgress",
    ),
    (
        "budget used up",
        lambda: running(restart={"maxRestarts": 0}).exit(3),
        "False/RestartBudgetExhausted",
        "-",
        "True/RestartBudgetExhausted",
        "Failed",
    ),
    (
        "pending",
        lambda: Sim().settle().change(waiting="ImagePullBackOff"),
        "Unknown/ImagePullBackOff",
        "True/Pending",
        "-",
        "InProgress",
    ),
    (
        "pending after the progress deadline",
        lambda: Sim().settle().change(waiting="ImagePullBackOff").wait(601),
        "Unknown/ImagePullBackOff",
        "True/Pending",
        "True/ProgressDeadlineExceeded",
        "Failed",
    ),
    (
        "template refused, old pod well",
        lambda: _refused(running()),
        "False/InvalidTemplate",
        "-",
        "True/InvalidTemplate",
        "Failed",
    ),
    (
        "pod stuck terminating",
        lambda: running().change(terminating=True).wait(41),
        "False/PodStuckTerminating",
        "True/Restarting",
        "-",
        "InProgress",
    ),
    ("paused", lambda: running().edit(operatingMode="Paused"), "True/Paused", "-", "-", "Current"),
    (
        "paused, agent dead",
        lambda: running().edit(operatingMode="Paused").exit(3),
        "False/AgentDown",
        "-",
        "True/Paused",
        "Failed",
    ),
    (
        "stopped",
        lambda: running().edit(operatingMode="Stopped").remove(),
        "True/Stopped",
        "-",
        "-",
        "Current",
    ),
    ("finished", lambda: running().exit(0), "True/Succeeded", "-", "-", "Current"),
]


def _refused(sim: Sim) -> Sim:
    sim.refuse_try = Refusal(RefusalKind.TEMPLATE, "no such field")
    return sim.edit(agent={"image": "b"})


@pytest.mark.parametrize(
    ("story", "ready", "reconciling", "stalled", "read"),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
def test_each_state_shows_what_its_row_says(
    story: Callable[[], Sim], ready: str, reconciling: str, stalled: str, read: str
) -> None:
    sim = story()
    said = tuple(sim.condition(kind) for kind in ("Ready", "Reconciling", "Stalled"))
    assert said == (ready, reconciling, stalled)
    item = {"metadata": {"generation": sim.generation}, "status": dump_status(sim.status)}
    assert kstatus(item) == read


def test_every_condition_carries_reason_and_generation_and_three_are_always_there() -> None:
    for _, story, *_ in ROWS[1:]:
        sim = story()
        conditions = sim.status.conditions or []
        assert {"Ready", "Unresponsive", "Paused"} <= {one.type for one in conditions}
        assert all(one.reason and one.observed_generation == sim.generation for one in conditions)


def test_states_that_look_alike_would_be_one() -> None:
    assert len({state.value for state in State}) == len(State)


def test_transition_time_moves_only_when_the_status_flips() -> None:
    sim = running()
    assert sim.status.conditions is not None
    before = sim.status.conditions[0].last_transition_time
    sim.wait(50).edit(description="words")
    assert sim.status.conditions[0].last_transition_time == before
    sim.exit(3)
    assert sim.status.conditions[0].last_transition_time != before
