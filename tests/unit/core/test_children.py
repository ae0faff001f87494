"""Children that fail: orders from above, escalation, and budgets that cannot multiply."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor_operator.api.v1alpha1.supervisor_status import SupervisorStatus
from supervisor_operator.core.children import MOST_ORDERS
from tests.support.tree_sim import TreeSim

ONCE = {"restart": {"maxRestarts": 0}}
NO_AGENT = {"agent": None}


def family(policy: str, **boss: Any) -> TreeSim:
    """A boss without an agent over one child that may not restart by itself."""
    spec = NO_AGENT | {"childFailurePolicy": policy} | boss
    return TreeSim({"boss": None, "kid": "boss"}, boss=spec, kid=ONCE).settle().start()


def condition(tree: TreeSim, name: str, kind: str) -> str:
    return tree.nodes[name].condition(kind)


def test_ignore_reports_and_does_nothing() -> None:
    tree = family("Ignore").crash("kid").wait(60)
    assert tree.nodes["kid"].created == ["kid-r1"]
    assert condition(tree, "boss", "ChildrenHealthy") == "False/Degraded"
    assert "ChildFailed" in {note.reason for note in tree.nodes["boss"].notes}


def test_child_order_to_start_again_is_given_once() -> None:
    tree = family("Restart").crash("kid").start()
    kid = tree.nodes["kid"]
    assert kid.created == ["kid-r1", "kid-r2"]
    assert kid.pod.parent_order == 1
    assert kid.status.restart_summary == "0/0", "its own budget is full again"
    orders = tree.nodes["boss"].status.child_orders or []
    assert [(order.child, order.run, order.id) for order in orders] == [("kid", 1, 1)]
    assert tree.phases() == {"boss": "ACTIVE", "kid": "ACTIVE"}


def test_orders_count_against_the_bosss_own_budget_and_then_it_escalates() -> None:
    tree = family("Restart", restart={"maxRestarts": 2})
    for _ in range(4):
        tree.crash("kid").wait(1).start()
    assert len(tree.nodes["kid"].created) == 3
    assert tree.phases() == {"boss": "FAILED", "kid": "FAILED"}
    outcome = tree.nodes["boss"].status.outcome
    assert outcome is not None
    assert (outcome.reason, outcome.child, outcome.child_run) == ("ChildFailed", "kid", 3)
    assert condition(tree, "boss", "Stalled") == "True/ChildFailed"


def test_fail_escalates_at_once_while_its_own_agent_runs_on() -> None:
    tree = TreeSim(
        {"boss": None, "kid": "boss", "other": "boss"},
        boss={"childFailurePolicy": "Fail"},
        kid=ONCE,
    )
    tree.settle().start().crash("kid").wait(60)
    assert tree.phases() == {"boss": "FAILED", "kid": "FAILED", "other": "ACTIVE"}
    assert [pod.name for pod in tree.nodes["boss"].unfinished] == ["boss-r1"]


@pytest.mark.parametrize("agent", [{}, NO_AGENT], ids=["with an agent", "without"])
def test_restart_request_clears_it_and_orders_failed_children_once(agent: dict[str, Any]) -> None:
    tree = TreeSim(
        {"boss": None, "kid": "boss"}, boss={"childFailurePolicy": "Fail"} | agent, kid=ONCE
    )
    tree.settle().start().crash("kid")
    assert tree.phases()["boss"] == "FAILED"
    tree.edit("boss", restartRequest="fixed").reap().start().reap().start()
    assert tree.phases() == {"boss": "ACTIVE", "kid": "ACTIVE"}
    assert tree.nodes["kid"].created == ["kid-r1", "kid-r2"]
    tree.crash("kid")
    assert tree.phases()["boss"] == "FAILED", "the next failure escalates again"


def test_escalation_goes_to_the_parents_parent_and_orders_come_down() -> None:
    tree = TreeSim(
        {"top": None, "mid": "top", "leaf": "mid"},
        top=NO_AGENT | {"childFailurePolicy": "Restart", "restart": {"maxRestarts": 1}},
        mid=NO_AGENT | {"childFailurePolicy": "Fail"},
        leaf=ONCE,
    )
    tree.settle().start().crash("leaf").start()
    assert tree.nodes["leaf"].created == ["leaf-r1", "leaf-r2"], "top orders mid, mid orders leaf"
    assert set(tree.phases().values()) == {"ACTIVE"}
    tree.crash("leaf").wait(1).start()
    assert set(tree.phases().values()) == {"FAILED"}, "top's budget of 1 is used up"


def test_escalation_of_one_with_an_agent_restarts_that_agent_and_is_bounded() -> None:
    tree = TreeSim(
        {"top": None, "mid": "top", "leaf": "mid"},
        top=NO_AGENT | {"childFailurePolicy": "Restart", "restart": {"maxRestarts": 1}},
        mid={"childFailurePolicy": "Fail"},
        leaf=ONCE,
    )
    tree.settle().start()
    for _ in range(5):
        tree.crash("leaf").reap().wait(1).start()
    assert tree.nodes["mid"].created == ["mid-r1", "mid-r2"]
    assert tree.nodes["leaf"].created == ["leaf-r1", "leaf-r2"]
    assert tree.phases() == {"top": "FAILED", "mid": "FAILED", "leaf": "FAILED"}


def test_escalation_again_after_an_order_that_found_nothing_to_do() -> None:
    tree = TreeSim(
        {"top": None, "mid": "top", "leaf": "mid"},
        top=NO_AGENT | {"childFailurePolicy": "Ignore", "restart": {"maxRestarts": 2}},
        mid=NO_AGENT | {"childFailurePolicy": "Fail"},
        leaf=ONCE,
    )
    tree.settle().start().crash("leaf").edit("leaf", restartRequest="repaired").start()
    assert tree.phases() == {"top": "FAILED", "mid": "FAILED", "leaf": "ACTIVE"}
    tree.edit("top", childFailurePolicy="Restart")
    assert set(tree.phases().values()) == {"ACTIVE"}
    for _ in range(4):
        tree.crash("leaf").start()
    assert tree.nodes["leaf"].created == ["leaf-r1", "leaf-r2", "leaf-r3"]
    assert set(tree.phases().values()) == {"FAILED"}, "both orders of top are used up"


def test_orders_beyond_what_the_record_holds_are_not_given() -> None:
    tree = family("Restart", restart={"maxRestarts": 1000, "resetAfterSeconds": 604_800})
    for _ in range(MOST_ORDERS + 5):
        tree.crash("kid").start()
    assert len(tree.nodes["kid"].created) == MOST_ORDERS + 1
    assert tree.phases() == {"boss": "FAILED", "kid": "FAILED"}


def test_a_wiped_boss_gives_no_order_twice() -> None:
    tree = family("Restart").crash("kid").start()
    tree.nodes["boss"].status = SupervisorStatus()
    tree.settle().wait(5)
    assert tree.nodes["kid"].created == ["kid-r1", "kid-r2"]
    tree.crash("kid").start()
    orders = tree.nodes["boss"].status.child_orders or []
    assert [order.id for order in orders] == [1, 2]


@pytest.mark.parametrize("policy", ["Restart", "Fail"])
def test_in_a_cycle_nobody_orders_or_fails_another(policy: str) -> None:
    tree = TreeSim(
        {"a": "b", "b": "c", "c": "a", "below": "a"},
        **{name: {"childFailurePolicy": policy} | ONCE for name in ("a", "b", "c", "below")},
    )
    tree.settle().start().crash("a").crash("below").wait(60)
    assert tree.phases() == {"a": "FAILED", "b": "ACTIVE", "c": "ACTIVE", "below": "FAILED"}
    assert [len(node.created) for node in tree.nodes.values()] == [1, 1, 1, 1]


@pytest.mark.parametrize(("mode", "phase"), [("Stopped", "TERMINATED"), ("Paused", "PAUSED")])
def test_effective_mode_of_the_top_holds_for_the_subtree(mode: str, phase: str) -> None:
    tree = TreeSim(
        {"top": None, "mid": "top", "leaf": "mid"}, top={"childFailurePolicy": "Restart"}
    )
    tree.settle().start().edit("top", operatingMode=mode).reap()
    assert set(tree.phases().values()) == {phase}
    assert not tree.nodes["top"].status.child_orders
    tree.edit("top", operatingMode="Running").start()
    assert set(tree.phases().values()) == {"ACTIVE"}


POLICIES = st.sampled_from(["Ignore", "Restart", "Fail"])
NODES = st.lists(
    st.tuples(st.integers(0, 8), POLICIES, st.integers(0, 2), st.booleans()), min_size=1, max_size=8
)
"""Per node: number of its parent (also of one below it, or of none that is there), policy, budget,
whether it has an agent."""


@settings(max_examples=80, deadline=None)
@given(nodes=NODES, faults=st.lists(st.integers(0, 7), max_size=40))
def test_budgets_cannot_multiply_into_a_storm(
    nodes: list[tuple[int, str, int, bool]], faults: list[int]
) -> None:
    """Per agent at most (maxRestarts + 1) x (1 + sum of maxRestarts above) restarts."""
    parents: dict[str, str | None] = {}
    specs: dict[str, dict[str, Any]] = {}
    for number, (above, policy, most, has_agent) in enumerate(nodes):
        name = f"n{number}"
        parents[name] = f"n{above}" if above < len(nodes) else None
        restart = {"maxRestarts": most, "resetAfterSeconds": 604_800, "delaySeconds": 1}
        specs[name] = {"childFailurePolicy": policy, "restart": restart}
        specs[name] |= {} if has_agent else NO_AGENT
    tree = TreeSim(parents, **specs).settle().start()
    for fault in faults:
        tree.crash(f"n{fault % len(nodes)}").reap().wait(400).start()
    for number, (_, _, most, _) in enumerate(nodes):
        total = sum(nodes[int(boss[1:])][2] for boss in all_above(f"n{number}", parents))
        assert len(tree.nodes[f"n{number}"].created) <= (most + 1) * (1 + total)


def all_above(name: str, parents: dict[str, str | None]) -> set[str]:
    found: set[str] = set()
    boss = parents[name]
    while boss is not None and boss not in found:
        found.add(boss)
        boss = parents[boss]
    return found
