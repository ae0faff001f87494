"""The supervision tree: lines upwards, modes that come down, phases that go up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_operator.api.v1alpha1.meta import Health, OperatingMode, Phase
from supervisor_operator.core.tree import (
    MAX_DEPTH,
    ChildView,
    Lineage,
    LineProblem,
    RollUp,
    TreeView,
    roll_up,
    strictest,
    trace,
)
from tests.support.sim import Sim

ACTIVE = ChildView("a", Phase.ACTIVE, Health.HEALTHY)
SILENT = ChildView("s", Phase.ACTIVE, Health.UNRESPONSIVE)
STARTING = ChildView("n", Phase.SPAWNING, Health.UNKNOWN)
FAILED = ChildView("f", Phase.FAILED, Health.UNKNOWN)
STOPPED = ChildView("t", Phase.TERMINATED, Health.UNKNOWN)
PAUSED = ChildView("p", Phase.PAUSED, Health.UNKNOWN)
FINISHED = ChildView("d", Phase.TERMINATED, Health.UNKNOWN, finished=True)
UNSEEN = ChildView("u", None, None)


def line(name: str, parents: dict[str, str], there: set[str] | None = None) -> Lineage:
    known = there if there is not None else {name, *parents, *parents.values()}
    return trace(name, parents.get, known.__contains__)


def test_a_line_without_a_parent_is_empty() -> None:
    assert line("a", {}) == Lineage()


def test_a_line_names_those_above_nearest_first() -> None:
    assert line("a", {"a": "b", "b": "c"}).ancestors == ("b", "c")


def test_a_missing_parent_is_named_and_what_is_there_is_followed() -> None:
    found = line("a", {"a": "b", "b": "c"}, {"a", "b"})
    assert found == Lineage(("b",), LineProblem.MISSING, "c")


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_members_of_a_cycle_obey_only_themselves(name: str) -> None:
    found = line(name, {"a": "b", "b": "c", "c": "a"})
    assert (found.ancestors, found.problem) == ((), LineProblem.CYCLE)


def test_depth_6_is_reported_and_not_followed() -> None:
    parents = {f"n{number}": f"n{number + 1}" for number in range(6)}
    assert line("n1", parents) == Lineage(tuple(f"n{number}" for number in range(2, 7)))
    found = line("n0", parents)
    assert (len(found.ancestors), found.problem, found.culprit) == (5, LineProblem.TOO_DEEP, "n6")


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("abcdefgh")))
def test_any_references_end(parents: dict[str, str]) -> None:
    for name in "abcdefgh":
        found = line(name, parents)
        assert len(found.ancestors) <= MAX_DEPTH
        assert name not in found.ancestors


def test_the_strictest_mode_wins() -> None:
    running, paused, stopped = OperatingMode
    assert strictest([running, paused]) is paused
    assert strictest([paused, stopped, running]) is stopped


@pytest.mark.parametrize(
    ("children", "together"),
    [
        ((), RollUp.EMPTY),
        ((UNSEEN,), RollUp.STARTING),
        ((STARTING, STARTING), RollUp.STARTING),
        ((ACTIVE, ACTIVE), RollUp.ACTIVE),
        ((ACTIVE, FINISHED), RollUp.ACTIVE),
        ((ACTIVE, STOPPED), RollUp.ACTIVE),
        ((ACTIVE, STARTING), RollUp.DEGRADED),
        ((ACTIVE, FAILED), RollUp.DEGRADED),
        ((SILENT,), RollUp.DEGRADED),
        ((FAILED, FAILED), RollUp.FAILED),
        ((FAILED, FINISHED), RollUp.FAILED),
        ((FAILED, STARTING), RollUp.STARTING),
        ((FINISHED, FINISHED), RollUp.FINISHED),
        ((PAUSED,), RollUp.PAUSED),
        ((PAUSED, STOPPED, FINISHED), RollUp.PAUSED),
        ((STOPPED, FINISHED), RollUp.STOPPED),
        ((STOPPED, STARTING), RollUp.STARTING),
        ((PAUSED, FAILED), RollUp.FAILED),
    ],
)
def test_what_several_agents_are_taken_together(
    children: tuple[ChildView, ...], together: RollUp
) -> None:
    assert roll_up(children) is together


@pytest.mark.parametrize(
    ("children", "phase", "ready"),
    [
        ((), "ACTIVE", "True/NoChildren"),
        ((STARTING,), "SPAWNING", "Unknown/ChildrenStarting"),
        ((ACTIVE,), "ACTIVE", "True/ChildrenHealthy"),
        ((ACTIVE, FAILED), "ACTIVE", "False/Degraded"),
        ((FAILED,), "FAILED", "False/ChildrenFailed"),
        ((FINISHED,), "TERMINATED", "True/ChildrenFinished"),
        ((PAUSED,), "PAUSED", "True/ChildrenPaused"),
        ((STOPPED,), "TERMINATED", "True/ChildrenStopped"),
    ],
)
def test_phase_of_a_supervisor_without_an_agent_comes_from_its_children(
    children: tuple[ChildView, ...], phase: str, ready: str
) -> None:
    sim = Sim(agent=None)
    sim.tree = TreeView(children=children)
    sim.settle()
    assert (str(sim.status.phase), sim.condition("Ready")) == (phase, ready)


def test_a_culprit_is_named() -> None:
    sim = Sim(agent=None)
    sim.tree = TreeView(children=(ACTIVE, FAILED, SILENT))
    sim.settle()
    assert sim.condition("ChildrenHealthy") == "False/Degraded"
    message = next(one.message for one in sim.status.conditions or () if one.type == "Ready")
    assert message == ("2 of 3 children are ACTIVE; f is FAILED/UNKNOWN, s is ACTIVE/UNRESPONSIVE")
    assert sim.status.children is not None
    assert sim.status.children.model_dump() == {
        "total": 3,
        "active": 2,
        "unresponsive": 1,
        "failed": 1,
    }


def test_a_wrong_parent_is_told_and_stops_nobody() -> None:
    sim = Sim(heartbeat={"source": "None"}, parentRef={"name": "boss"})
    sim.tree = TreeView(Lineage((), LineProblem.MISSING, "boss"))
    sim.settle().start()
    assert sim.condition("ParentResolved") == "False/ParentMissing"
    assert sim.condition("Ready") == "True/PodReady"
