"""Teams: members, orders, budgets and the roll-up, one test per row of the design's table."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from supervisor_operator.api.v1alpha1.team import TeamSpec
from supervisor_operator.api.v1alpha1.team_status import (
    MemberStatus,
    OrderTrigger,
    TeamOrder,
    TeamStatus,
)
from supervisor_operator.core.observed import Refusal, RefusalKind
from supervisor_operator.core.team.members import wanted_agents
from supervisor_operator.core.team.observed import AgentView, TeamObserved
from supervisor_operator.core.team.plan import plan_team
from supervisor_operator.kube.report import dump_status
from tests.support.sim import START, Sim
from tests.support.team_sim import TeamSim, member

ABC = ("crew-a", "crew-b", "crew-c")


def crew(strategy: str = "OneForOne", **spec: Any) -> TeamSim:
    """Three agents a, b, c that are all ACTIVE."""
    team = TeamSim(member("a"), member("b"), member("c"), restartStrategy=strategy, **spec)
    team.settle().start()
    while set(team.phases().values()) != {"ACTIVE"}:
        team.start()
    team.history.clear()
    return team


def play(team: TeamSim) -> TeamSim:
    """Let everything that is due happen: pods go, time passes, pods start."""
    for _ in range(12):
        team.reap().wait(2).start()
    return team


def test_members_become_owned_supervisors_in_list_order() -> None:
    team = TeamSim(member("lead", role="LEAD"), member("scout", replicas=2)).settle()
    assert list(team.agents) == ["crew-lead", "crew-scout-1", "crew-scout-2"]
    team.start()
    assert team.status.phase == "ACTIVE"
    assert team.status.ready_summary == "3/3"
    assert team.status.lead == "crew-lead"
    assert [stay.role for stay in team.status.members or ()] == ["LEAD", "MEMBER", "MEMBER"]
    assert team.condition("Ready") == "True/MembersHealthy"
    assert team.agents["crew-lead"].status.member_of is not None


def test_adding_removing_and_scaling_touch_only_those_agents() -> None:
    team = TeamSim(member("a"), member("b", replicas=1)).settle().start()
    before = {name: sim.uid for name, sim in team.agents.items()}
    team.edit(members=[member("a"), member("b", replicas=2), member("d")]).start()
    assert list(team.agents) == ["crew-a", "crew-b-1", "crew-b-2", "crew-d"]
    assert {name: team.agents[name].uid for name in before} == before
    team.edit(members=[member("a"), member("b", replicas=1)])
    assert list(team.agents) == ["crew-a", "crew-b-1"], "scale-down takes the highest"
    left = {stay.supervisor for stay in team.status.members or () if stay.left_at}
    assert left == {"crew-b-2", "crew-d"}
    assert all(sim.created == [f"{name}-r1"] for name, sim in team.agents.items())


def test_renamed_is_left_and_joined_and_rerolled_touches_nobody() -> None:
    team = TeamSim(member("a"), member("b")).settle().start().wait(60)
    uid = team.agents["crew-a"].uid
    team.edit(members=[member("a", role="LEAD"), member("z")]).start()
    assert (team.agents["crew-a"].uid, team.agents["crew-a"].created) == (uid, ["crew-a-r1"])
    stays = [(stay.name, stay.left_at is not None) for stay in team.status.members or ()]
    assert stays == [("a", False), ("z", False), ("b", True)]


def test_a_stay_has_its_exact_times_and_the_agents_uid_through_restarts() -> None:
    team = TeamSim(member("a"), {"name": "x", "ref": {"name": "hello"}}).settle()
    team.wait(10).add("hello", {"agent": {"image": "a"}, "heartbeat": {"source": "None"}})
    play(team.settle().start().crash("crew-a"))
    first = {stay.supervisor: stay for stay in team.status.members or ()}
    assert {name: sim.uid for name, sim in team.agents.items()} == {
        name: stay.agent_id for name, stay in first.items()
    }
    seconds = {
        name: (stay.joined_at - START).seconds for name, stay in first.items() if stay.joined_at
    }
    assert seconds == {"crew-a": 0, "hello": 10}
    assert (first["crew-a"].restarts, first["crew-a"].left_at) == (1, None)
    left_at = team.wait(7).wall.replace(microsecond=0)
    team.edit(members=[]).wait(60)
    stays = {stay.supervisor: stay for stay in team.status.members or ()}
    assert {stay.left_at for stay in stays.values()} == {left_at}
    assert {name: stay.joined_at for name, stay in stays.items()} == {
        name: stay.joined_at for name, stay in first.items()
    }


def test_who_left_is_kept_but_at_most_50() -> None:
    team = TeamSim().settle()
    for number in range(60):
        team.edit(members=[member(f"m{number}")])
    left = [stay for stay in team.status.members or () if stay.left_at]
    assert [stay.name for stay in left] == [f"m{number}" for number in range(9, 59)]


def test_defaults_fill_whole_absent_blocks_and_merge_nothing() -> None:
    defaults = {"agent": {"image": "default"}, "restart": {"maxRestarts": 9}}
    members = [
        {"name": "a", "template": {}},
        {"name": "b", "template": {"agent": {"image": "own"}, "restart": {"delaySeconds": 1}}},
    ]
    team = TeamSim(*members, defaults=defaults).settle()
    a, b = (team.agents[name].observe().spec for name in ("crew-a", "crew-b"))
    assert (a.agent and a.agent.image, a.restart.max_restarts) == ("default", 9)
    assert (b.agent and b.agent.image, b.restart.max_restarts) == ("own", 3)


def test_drift_is_put_back_but_on_call_fields_are_kept() -> None:
    team = TeamSim(member("a")).settle().start()
    agent = team.agents["crew-a"]
    agent.edit(agent={"image": "edited"}, operatingMode="Paused", restartRequest="now")
    team.settle()
    spec = agent.observe().spec
    assert spec.agent is not None
    assert (spec.agent.image, spec.operating_mode, spec.restart_request) == ("a", "Paused", "now")


def test_an_owned_supervisor_that_was_deleted_is_made_again() -> None:
    team = TeamSim(member("a")).settle().start()
    del team.agents["crew-a"]
    team.settle().start()
    assert team.phases() == {"crew-a": "ACTIVE"}
    assert len([stay for stay in team.status.members or () if stay.left_at]) == 1


def test_an_owned_supervisor_whose_spec_cannot_be_read_is_put_back() -> None:
    team = crew()
    team.agents["crew-a"].spec_json = {"agent": {"image": 3}, "restartRequest": "now"}
    play(team.settle())
    spec = team.agents["crew-a"].observe().spec
    assert spec.agent is not None
    assert (spec.agent.image, spec.restart_request) == ("a", "now")
    assert team.phases() == dict.fromkeys(ABC, "ACTIVE")


@pytest.mark.parametrize(
    ("more", "taken", "culprit"),
    [
        ({"name": "x", "ref": {"name": "crew-a"}}, "crew-a is member a", "x"),
        (member("a-1"), "crew-a-1 is member a-1", "a"),
    ],
    ids=["a ref to an owned one", "names that come to the same"],
)
def test_a_supervisor_that_is_two_members_is_the_first_ones(
    more: dict[str, Any], taken: str, culprit: str
) -> None:
    members = [more, member("a", replicas=1)] if "template" in more else [member("a"), more]
    team = play(TeamSim(*members, member("b"), restartStrategy="OneForAll").settle())
    assert team.status.member_count == 2
    assert team.condition("MembersResolved") == "False/NameConflict"
    said = f"Supervisor {taken} already: rename or remove member {culprit}"
    assert team.message("MembersResolved") == said
    play(team.crash("crew-b"))
    assert [len(sim.created) for sim in team.agents.values()] == [2, 2]


def test_a_ref_before_the_member_that_makes_it_takes_nothing_away() -> None:
    team = crew()
    uids = {name: sim.uid for name, sim in team.agents.items()}
    ref = {"name": "x", "ref": {"name": "crew-a"}}
    play(team.edit(members=[ref, *map(member, "abc")]))
    assert {name: sim.uid for name, sim in team.agents.items()} == uids
    said = "Supervisor crew-a is member a already: rename or remove member x"
    assert team.message("MembersResolved") == said


def test_ref_members_are_assigned_without_ownership() -> None:
    team = TeamSim({"name": "x", "ref": {"name": "hello"}}, member("a")).settle()
    assert team.condition("MembersResolved") == "False/NotFound"
    team.add("hello", {"agent": {"image": "a"}, "heartbeat": {"source": "None"}}).settle().start()
    assert team.condition("MembersResolved") == "True/Resolved"
    link = team.agents["hello"].status.member_of
    assert link is not None
    assert (link.team, link.member) == ("crew", "x")
    team.edit(members=[member("a")])
    assert "hello" in team.agents, "nothing of the user's is deleted"
    assert team.agents["hello"].status.member_of is None


@pytest.mark.parametrize(
    ("held", "owner", "reason"),
    [({"hello": "other"}, "", "AlreadyAssigned"), ({}, "", "Resolved")],
)
def test_a_ref_named_by_two_teams(held: dict[str, str], owner: str, reason: str) -> None:
    team = TeamSim({"name": "x", "ref": {"name": "hello"}})
    team.add("hello", {"agent": {"image": "a"}}, owner)
    team.held = held
    team.settle()
    assert team.condition("MembersResolved").endswith(reason)


def test_a_name_that_collides_is_told_and_the_others_run_on() -> None:
    team = TeamSim(member("a"), member("b"))
    team.add("crew-a", {"agent": {"image": "mine"}, "heartbeat": {"source": "None"}})
    team.settle().start()
    assert team.condition("MembersResolved") == "False/NameConflict"
    assert team.agents["crew-a"].spec_json["agent"]["image"] == "mine"
    assert team.phases()["crew-b"] == "ACTIVE"
    assert team.condition("Degraded") == "True/Degraded"


def test_one_for_one_restarts_itself_alone() -> None:
    team = play(crew().crash("crew-b"))
    assert team.history == ["+ crew-b-r2"]
    assert team.status.order is None


def test_one_for_all_stops_in_reverse_and_starts_in_list_order() -> None:
    team = play(crew("OneForAll").crash("crew-b"))
    assert team.history == [
        *("- crew-c-r1", "- crew-a-r1"),
        *("+ crew-a-r2", "+ crew-b-r2", "+ crew-c-r2"),
    ]
    assert team.status.order is not None
    assert team.status.order.members == list(ABC)
    assert team.phases() == dict.fromkeys(ABC, "ACTIVE")


def test_rest_for_one_restarts_it_and_those_after_it() -> None:
    team = play(crew("RestForOne").crash("crew-b"))
    assert team.history == ["- crew-c-r1", "+ crew-b-r2", "+ crew-c-r2"]


def test_counting_is_the_triggers_own_its_siblings_count_nothing() -> None:
    team = play(crew("OneForAll").crash("crew-b"))
    counted = {name: sim.status.restart_summary for name, sim in team.agents.items()}
    assert counted == {"crew-a": "0/3", "crew-b": "1/3", "crew-c": "0/3"}
    reasons = {name: sim.pod.run_reason for name, sim in team.agents.items()}
    assert set(reasons.values()) == {"GroupRestart"}


def test_obey_stop_only_when_all_later_ones_have_ended() -> None:
    team = crew("OneForAll").crash("crew-a")
    assert [name for name in ABC if terminates(team, name)] == ["crew-c"]
    team.wait(60)
    assert [name for name in ABC if terminates(team, name)] == ["crew-c"], "however long it takes"
    team._sync(team.agents["crew-c"]).remove()
    assert [name for name in ABC if terminates(team.settle(), name)] == ["crew-b"]
    assert team.pods() == ["crew-b-r1"], "nobody starts before all have ended"


def terminates(team: TeamSim, name: str) -> bool:
    return any(pod.terminating for pod in team.agents[name].pods.values())


LEAVES: dict[str, Callable[[TeamSim], object]] = {
    "removed from the list": lambda team: team.edit(members=[member("a"), member("b")]),
    "deleted by hand": lambda team: team.delete("crew-c"),
    "being deleted": lambda team: team.leaving.add("crew-c"),
    "paused": lambda team: team.edit_agent("crew-c", operatingMode="Paused"),
    "stopped": lambda team: team.edit_agent("crew-c", operatingMode="Stopped"),
    "its parent is paused": lambda team: team.put_above("crew-c", "Paused"),
}


@pytest.mark.parametrize("how", LEAVES)
def test_obey_goes_on_without_a_member_that_leaves_during_the_order(how: str) -> None:
    team = crew("OneForAll").crash("crew-a")
    LEAVES[how](team)
    play(team.settle())
    restarted = {name: team.agents[name].created for name in ABC[:2]}
    assert restarted == {name: [f"{name}-r1", f"{name}-r2"] for name in ABC[:2]}


def test_obey_is_over_when_the_last_has_started_or_failed() -> None:
    once = {"restart": {"maxRestarts": 0}}
    team = TeamSim(
        *(member("a"), member("b"), member("c", template=once), member("d")),
        restartStrategy="OneForAll",
    )
    play(team.settle()).crash("crew-a").settle()
    assert team.condition("Reconciling") == "True/GroupRestart"
    assert team.message("Reconciling") == "order 1 is being obeyed, next by crew-d"
    team.crash("crew-c")
    play(team)
    assert team.phases()["crew-c"] == "FAILED"
    assert [len(sim.created) for sim in team.agents.values()] == [2, 2, 1, 2]
    assert team.condition("Reconciling") == "-"
    assert team.condition("Degraded") == "True/Degraded"


def test_who_is_being_deleted_is_not_deleted_again() -> None:
    team = crew()
    team.leaving.add("crew-c")
    team.edit(members=[member("a"), member("b")])
    assert team.plan().actions == ()
    assert "crew-c" in team.agents


def test_obey_start_waits_for_nobody_whose_pod_is_refused() -> None:
    team = crew("OneForAll").crash("crew-c")
    team.agents["crew-a"].refuse = Refusal(RefusalKind.CREATE, "the quota is full")
    play(team)
    assert team.phases() == {"crew-a": "SPAWNING", "crew-b": "ACTIVE", "crew-c": "ACTIVE"}
    assert "crew-a is SPAWNING" in team.message("Ready")
    team.agents["crew-a"].refuse = None
    play(team)
    assert team.phases() == dict.fromkeys(ABC, "ACTIVE")
    assert [len(sim.created) for sim in team.agents.values()] == [2, 2, 2]


def test_obey_is_no_matter_of_a_stamp_from_a_former_team() -> None:
    team = play(crew("OneForAll").crash("crew-b"))
    team.add("hello", {"agent": {"image": "a"}, "heartbeat": {"source": "None"}}).settle().start()
    hello = team.agents["hello"]
    hello.pods["hello-r1"] = replace(hello.pod, order=7)
    team.history.clear()
    members = [member(one) for one in "abc"]
    play(team.edit(members=[*members, {"name": "x", "ref": {"name": "hello"}}]))
    assert team.history == []
    play(team.crash("crew-b"))
    assert team.status.order is not None
    assert team.status.order.id == 8
    assert [sim.pod.order for sim in team.agents.values()] == [8, 8, 8, 8]


def test_obey_start_only_when_the_one_before_is_active() -> None:
    team = crew("OneForAll").crash("crew-a").reap().wait(10)
    assert team.pods() == ["crew-a-r2"]
    team.wait(10)
    assert team.pods() == ["crew-a-r2"]
    team.start("crew-a").wait(2)
    assert team.pods() == ["crew-a-r2", "crew-b-r2"]


def test_obey_start_waits_no_longer_than_startup_seconds() -> None:
    team = crew("OneForAll").crash("crew-a").reap().wait(100)
    assert team.pods() == ["crew-a-r2"]
    team.wait(40)
    assert team.pods() == ["crew-a-r2", "crew-b-r2"], "its pod hangs somewhere, 120 s are over"


def test_obey_start_only_after_the_triggers_delay() -> None:
    team = crew("OneForAll").crash("crew-b").reap().wait(3)
    assert team.pods() == []
    team.wait(4)
    assert team.pods() == ["crew-a-r2"]


IGNORE = {"restart": {"exitCodes": [{"codes": [9], "action": "Ignore"}]}}


def change_b(team: TeamSim, _: Sim) -> None:
    new = {"agent": {"image": "new"}} | IGNORE
    team.edit(members=[member(one, template=new if one == "b" else IGNORE) for one in "abc"])


ENDS: dict[str, Callable[[TeamSim, Sim], object]] = {
    "evicted": lambda _, sim: sim.change(phase="Failed", reason="Evicted", disrupted=True),
    "deleted by hand": lambda _, sim: sim.remove(),
    "finished": lambda _, sim: sim.exit(0),
    "ignored": lambda _, sim: sim.exit(9),
    "asked for": lambda _, sim: sim.edit(restartRequest="now"),
    "a new template": change_b,
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("orders", [0, 1])
def test_group_failure_is_counted_other_ends_concern_that_agent_alone(
    end: str, orders: int
) -> None:
    team = TeamSim(*(member(one, template=IGNORE) for one in "abc"), restartStrategy="OneForAll")
    play(team.settle())
    for _ in range(orders):
        play(team.crash("crew-b"))
    before = {name: list(sim.created) for name, sim in team.agents.items()}
    ENDS[end](team, team._sync(team.agents["crew-b"]))
    play(team.settle())
    assert (team.status.order.id if team.status.order else 0) == orders
    new = {name: sim.created[len(before[name]) :] for name, sim in team.agents.items()}
    assert (new["crew-a"], len(new["crew-b"]), new["crew-c"]) == ([], end != "finished", [])
    if new["crew-b"]:
        assert team.agents["crew-b"].pod.run_reason != "GroupRestart"


RESTING: dict[str, Callable[[TeamSim, Sim], object]] = {
    "paused": lambda team, _: team.edit_agent("crew-c", operatingMode="Paused"),
    "stopped": lambda team, _: team.edit_agent("crew-c", operatingMode="Stopped").reap(),
    "finished": lambda _, sim: sim.exit(0),
    "failed": lambda team, _: team.crash("crew-c"),
    "under a parent that is paused": lambda team, _: team.put_above("crew-c", "Paused"),
    "being deleted": lambda team, _: team.leaving.add("crew-c"),
}


@pytest.mark.parametrize("how", RESTING)
def test_order_leaves_out_who_cannot_obey_and_waits_for_none_of_them(how: str) -> None:
    once = {"restart": {"maxRestarts": 0}}
    team = TeamSim(
        *(member("a"), member("b"), member("c", template=once), member("d")),
        restartStrategy="OneForAll",
    )
    play(team.settle())
    RESTING[how](team, team._sync(team.agents["crew-c"]))
    play(team.settle().crash("crew-b"))
    assert team.status.order is not None
    assert team.status.order.members == ["crew-a", "crew-b", "crew-d"]
    assert [len(sim.created) for sim in team.agents.values()] == [2, 2, 1, 2]


def test_order_is_in_status_before_anyone_acts() -> None:
    team = crew("OneForAll")
    team._sync(team.agents["crew-b"]).exit(3)
    plan = team.plan()
    assert plan.status.order is not None
    assert plan.status.order.id == 1
    assert team.pods() == ["crew-a-r1", "crew-c-r1"]


def test_covered_is_a_failure_during_an_order() -> None:
    team = crew("OneForAll").crash("crew-b").crash("crew-a")
    play(team)
    assert team.status.order is not None
    assert team.status.order.id == 1
    assert {name: len(sim.created) for name, sim in team.agents.items()} == dict.fromkeys(ABC, 2)
    counted = {name: sim.status.restart_summary for name, sim in team.agents.items()}
    assert counted == {"crew-a": "0/3", "crew-b": "1/3", "crew-c": "0/3"}, "the trigger's alone"


def test_covered_is_no_failure_whose_pod_is_gone_since() -> None:
    team = play(crew("OneForAll", maxUnhealthy=3).crash("crew-b"))
    team.edit(maxUnhealthy=0).crash("crew-c")
    team._sync(team.agents["crew-c"]).remove()
    team.settle().wait(30)
    assert team.pods() == ["crew-a-r2", "crew-b-r2"], "held back by maxUnhealthy"
    assert team.status.order is not None
    assert team.status.order.id == 1
    play(team.edit(maxUnhealthy=3))
    assert team.status.order is not None
    assert (team.status.order.id, team.status.order.trigger) == (
        2,
        OrderTrigger(supervisor="crew-c", pod_uid=team.status.order.trigger.pod_uid),  # type: ignore[union-attr]
    )
    assert team.agents["crew-c"].status.restart_summary == "1/3"


def test_covered_is_no_failure_of_a_pod_that_the_order_started() -> None:
    team = crew("OneForAll").crash("crew-b").reap().wait(10).start("crew-a")
    play(team.crash("crew-a"))
    assert team.status.order is not None
    assert team.status.order.id == 2
    assert team.phases() == dict.fromkeys(ABC, "ACTIVE")


def test_a_member_paused_during_an_order_is_left_alone() -> None:
    team = crew("OneForAll").crash("crew-b")
    team.agents["crew-c"].edit(operatingMode="Paused")
    play(team)
    assert team.agents["crew-c"].created == ["crew-c-r1"]
    assert team.phases() == {"crew-a": "ACTIVE", "crew-b": "ACTIVE", "crew-c": "PAUSED"}


def test_max_team_restarts_used_up_then_the_way_out() -> None:
    team = crew("OneForAll", maxTeamRestarts=1)
    play(team.crash("crew-b"))
    team.crash("crew-c")
    play(team)
    assert team.phases()["crew-c"] == "FAILED"
    assert team.phases()["crew-a"] == "ACTIVE", "siblings untouched"
    assert (str(team.status.phase), team.condition("Stalled")) == (
        "FAILED",
        "True/TeamRestartBudgetExhausted",
    )
    play(team.edit(restartRequest="fixed"))
    assert team.phases() == dict.fromkeys(ABC, "ACTIVE")
    assert str(team.status.phase) == "ACTIVE"


def test_counting_own_budget_used_up_is_failed_without_an_order() -> None:
    team = TeamSim(
        member("a"),
        member("b", template={"restart": {"maxRestarts": 0}}),
        restartStrategy="OneForAll",
    )
    team.settle()
    play(team)
    play(team.crash("crew-b"))
    assert team.status.order is None
    assert team.phases() == {"crew-a": "ACTIVE", "crew-b": "FAILED"}
    assert team.condition("Degraded") == "True/Degraded"


def test_restart_request_of_the_team_restarts_all_once_outside_the_budget() -> None:
    team = crew(restartRequest="old")
    assert team.status.order is None, "the value present at creation counts as handled"
    play(team.edit(restartRequest="new"))
    assert {name: sim.status.restart_summary for name, sim in team.agents.items()} == dict.fromkeys(
        ABC, "0/3"
    )
    assert {name: len(sim.created) for name, sim in team.agents.items()} == dict.fromkeys(ABC, 2)
    play(team)
    assert {name: len(sim.created) for name, sim in team.agents.items()} == dict.fromkeys(ABC, 2)


def test_restart_request_of_the_team_brings_a_failed_member_back_when_its_turn_comes() -> None:
    never = {"restart": {"policy": "Never"}}
    team = TeamSim(member("a"), member("b"), member("c", template=never))
    play(team.settle()).crash("crew-c")
    team.edit(restartRequest="again")
    assert team.phases()["crew-c"] == "FAILED", "b runs still, a comes first"
    assert [name for name in ABC if terminates(team, name)] == ["crew-b"]
    play(team)
    assert [sim.created[-1] for sim in team.agents.values()] == [f"{name}-r2" for name in ABC]
    assert team.phases() == dict.fromkeys(ABC, "ACTIVE")


def test_a_team_that_cannot_be_read_is_told_and_loses_nobody() -> None:
    team = play(crew("OneForAll").edit(restartRequest="once"))
    unread = replace(team.observe(), spec=TeamSpec(), invalid="spec.members: not a list")
    plan = plan_team(unread, team.wall)
    assert plan.actions == ()
    told = {one.type: one.message for one in plan.status.conditions or ()}
    assert told["Stalled"].endswith("its members are left alone: spec.members: not a list")
    kept = ("members", "order", "order_times", "handled_restart_request", "ready_summary")
    assert [getattr(plan.status, one) for one in kept] == [
        getattr(team.status, one) for one in kept
    ]
    team.status = plan.status
    before = team.pods()
    assert play(team.settle()).pods() == before


def test_max_unhealthy_holds_restarts_back() -> None:
    team = crew(maxUnhealthy=1).crash("crew-a").crash("crew-b")
    play(team)
    assert team.condition("RemediationAllowed") == "False/TooManyUnhealthy"
    assert team.pods() == ["crew-c-r1"]
    team.edit(maxUnhealthy=2)
    play(team)
    assert team.phases() == dict.fromkeys(ABC, "ACTIVE")


def test_max_unhealthy_counts_nobody_whom_an_order_stopped() -> None:
    team = crew("OneForAll", maxUnhealthy=1).crash("crew-b").reap()
    assert {sim.condition("Ready") for sim in team.agents.values()} == {"False/WaitingForTeam"}
    assert team.condition("RemediationAllowed") == "True/WithinLimit"


def test_max_unhealthy_of_0_percent_is_legal_and_says_so() -> None:
    team = crew(maxUnhealthy="0%")
    assert team.condition("RemediationAllowed") == "True/WithinLimit"
    team.crash("crew-a").wait(30)
    assert team.condition("RemediationAllowed") == "False/TooManyUnhealthy"
    assert team.message("RemediationAllowed").endswith(
        "maxUnhealthy 0%: nobody is restarted; crew-a"
    )
    assert team.pods() == ["crew-b-r1", "crew-c-r1"]


def test_max_concurrent_restarts_gives_slots_in_list_order() -> None:
    team = crew(maxConcurrentRestarts=1)
    for name in ABC:
        team.crash(name)
    team.wait(10)
    assert team.pods() == ["crew-a-r2"]
    team.start("crew-a").wait(2)
    assert team.pods() == ["crew-a-r2", "crew-b-r2"]


def test_max_concurrent_restarts_waits_for_nobodys_long_back_off() -> None:
    patient = {"restart": {"delaySeconds": 300}}
    team = TeamSim(member("a", template=patient), member("b"), member("c"))
    play(team.settle()).crash("crew-a").crash("crew-b").wait(10)
    assert team.pods() == ["crew-b-r2", "crew-c-r1"]
    team.start("crew-b").wait(300)
    assert team.pods() == ["crew-a-r2", "crew-b-r2", "crew-c-r1"]


@pytest.mark.parametrize(
    ("mode", "phase", "pods"), [("Paused", "PAUSED", 3), ("Stopped", "TERMINATED", 0)]
)
def test_effective_mode_of_a_team_overrides_its_members(mode: str, phase: str, pods: int) -> None:
    team = crew().edit(operatingMode=mode).reap()
    assert set(team.phases().values()) == {phase}
    assert (str(team.status.phase), len(team.pods())) == (phase, pods)
    play(team.edit(operatingMode="Running"))
    assert set(team.phases().values()) == {"ACTIVE"}


@pytest.mark.parametrize(
    ("own", "team", "above", "phase"),
    [
        ("Running", "Running", "Running", "ACTIVE"),
        ("Paused", "Running", "Running", "PAUSED"),
        ("Running", "Paused", "Running", "PAUSED"),
        ("Running", "Running", "Paused", "PAUSED"),
        ("Paused", "Stopped", "Running", "TERMINATED"),
        ("Stopped", "Paused", "Running", "TERMINATED"),
        ("Running", "Paused", "Stopped", "TERMINATED"),
    ],
)
def test_effective_mode_is_the_strictest(own: str, team: str, above: str, phase: str) -> None:
    found = crew().edit_agent("crew-b", operatingMode=own).put_above("crew-b", above)
    found.edit(operatingMode=team).reap()
    assert found.phases()["crew-b"] == phase


def test_a_team_made_before_its_supervisor_waits_without_pods() -> None:
    team = TeamSim(member("a"), supervisorRef={"name": "boss"})
    team.supervisor_there = False
    team.settle().wait(60)
    assert (team.pods(), team.condition("SupervisorResolved")) == ([], "False/SupervisorNotFound")
    team.supervisor_there = True
    team.settle().start()
    assert team.phases() == {"crew-a": "ACTIVE"}


def test_a_team_that_waits_for_its_supervisor_is_not_woken_by_an_agent_of_others() -> None:
    team = TeamSim(
        member("a"), {"name": "x", "ref": {"name": "hello"}}, supervisorRef={"name": "n"}
    )
    team.add("hello", {"agent": {"image": "a"}, "heartbeat": {"source": "None"}}).start()
    team.supervisor_there, team.held = False, {"hello": "others"}
    team.settle().wait(60)
    assert team.pods() == ["hello-r1"]


def test_a_living_team_given_a_supervisor_that_is_not_there_has_30_s_too() -> None:
    team = crew()
    team.supervisor_there = False
    team.edit(supervisorRef={"name": "typo"}).wait(25).reap()
    assert team.condition("SupervisorResolved") == "False/SupervisorNotFound"
    assert set(team.phases().values()) == {"ACTIVE"}
    team.wait(10).reap()
    assert set(team.phases().values()) == {"TERMINATED"}


@pytest.mark.parametrize(("policy", "phase"), [("Stop", "TERMINATED"), ("Keep", "ACTIVE")])
def test_supervisor_gone(policy: str, phase: str) -> None:
    team = crew(supervisorRef={"name": "boss"}, whenSupervisorGone=policy)
    team.supervisor_there = False
    team.wait(25).reap()
    assert set(team.phases().values()) == {"ACTIVE"}, "30 s for it to come back"
    assert team.condition("SupervisorResolved") == "False/SupervisorGone"
    team.wait(10).reap()
    assert set(team.phases().values()) == {phase}
    team.supervisor_there = True
    play(team.settle())
    assert set(team.phases().values()) == {"ACTIVE"}


def test_supervisor_gone_is_for_the_server_to_say_not_for_an_old_view() -> None:
    team = crew(supervisorRef={"name": "boss"})
    team.supervisor_there, team.asks_server = False, False
    team.wait(60)
    assert set(team.phases().values()) == {"ACTIVE"}
    team.asks_server = True
    team.settle().reap()
    assert set(team.phases().values()) == {"TERMINATED"}


def test_a_wiped_team_status_restarts_nobody_and_forgets_no_number() -> None:
    team = play(crew("OneForAll").crash("crew-b"))
    team.status = TeamStatus()
    play(team.settle())
    assert {name: len(sim.created) for name, sim in team.agents.items()} == dict.fromkeys(ABC, 2)
    play(team.crash("crew-a"))
    assert team.status.order is not None
    assert team.status.order.id == 2


def test_after_a_wipe_missing_order_times_count_as_now() -> None:
    team = play(crew("OneForAll", maxTeamRestarts=2).crash("crew-b"))
    play(team.crash("crew-b"))
    team.wait(700)
    team.status = TeamStatus()
    play(team.settle())
    assert len(team.status.order_times or ()) == 2, "a wipe errs to less budget"
    play(team.crash("crew-a"))
    assert team.condition("Stalled") == "True/TeamRestartBudgetExhausted"


def test_stamps_of_an_earlier_team_use_up_nothing() -> None:
    team = TeamSim({"name": "x", "ref": {"name": "hello"}}, restartStrategy="OneForAll")
    team.add("hello", {"agent": {"image": "a"}, "heartbeat": {"source": "None"}})
    order = TeamOrder(id=7, time=team.wall, reason="MemberFailed", members=[])
    team.status = TeamStatus(order=order)
    team.settle().start()
    assert team.agents["hello"].pod.order == 7, "every pod of a member gets the current number"
    team.status = TeamStatus()
    team.settle()
    assert team.status.order_times is None
    play(team.crash("hello"))
    assert team.status.order is not None
    assert team.status.order.id == 8


def test_a_team_that_its_own_member_leads_is_told_and_runs_on() -> None:
    team = TeamSim(member("a"), member("b"), supervisorRef={"name": "crew-a"})
    team.supervisor_there = False
    team.settle().start().wait(60)
    assert team.condition("SupervisorResolved") == "False/SupervisorIsMember"
    assert team.phases() == {"crew-a": "ACTIVE", "crew-b": "ACTIVE"}
    assert any("SupervisorIsMember: Supervisor crew-a is a member" in line for line in team.log)


def test_a_percentage_of_the_members_rounds_down() -> None:
    team = crew(maxUnhealthy="65%").crash("crew-a").crash("crew-b")
    assert team.condition("RemediationAllowed") == "False/TooManyUnhealthy", "65 % of 3 is 1"
    assert any(line.startswith("TooManyUnhealthy") for line in team.log)


def test_replicas_absent_one_two_and_one_again() -> None:
    team = TeamSim(member("a")).settle().start()
    names = []
    for replicas in (1, 2, 1):
        team.edit(members=[member("a", replicas=replicas)]).start()
        names.append(list(team.agents))
    assert names == [["crew-a-1"], ["crew-a-1", "crew-a-2"], ["crew-a-1"]]
    assert team.agents["crew-a-1"].created == ["crew-a-1-r1"]
    left = [stay.supervisor for stay in team.status.members or () if stay.left_at]
    assert left == ["crew-a", "crew-a-2"]


@pytest.mark.parametrize(
    ("story", "phase", "ready"),
    [
        (lambda team: team, "ACTIVE", "True/MembersHealthy"),
        (lambda team: team.crash("crew-a"), "ACTIVE", "False/Degraded"),
        (lambda team: team.edit(operatingMode="Paused"), "PAUSED", "True/Paused"),
        (lambda team: team.edit(operatingMode="Stopped"), "TERMINATED", "True/Stopped"),
        (lambda team: [finish(team, name) for name in ABC], "TERMINATED", "True/Succeeded"),
        (lambda team: [team.crash(name) for name in ABC], "SPAWNING", "Unknown/Starting"),
        (lambda team: team.edit(members=[]), "ACTIVE", "True/NoChildren"),
    ],
)
def test_phase_of_a_team(story: Callable[[TeamSim], object], phase: str, ready: str) -> None:
    team = crew()
    story(team)
    team.settle().reap()
    assert (str(team.status.phase), team.condition("Ready")) == (phase, ready)


def finish(team: TeamSim, name: str) -> Sim:
    return team._sync(team.agents[name]).exit(0)


def test_phase_of_a_team_whose_members_are_still_to_come() -> None:
    team = TeamSim(member("a"), member("b"))
    status = team.plan().status
    ready = next(one for one in status.conditions or () if one.type == "Ready")
    assert (str(status.phase), f"{ready.status}/{ready.reason}") == ("SPAWNING", "Unknown/Starting")
    assert ready.message == "0 of 2 members are ACTIVE"
    team = play(TeamSim(member("a"), {"name": "x", "ref": {"name": "nobody"}}).settle())
    assert (str(team.status.phase), team.condition("Ready")) == ("ACTIVE", "False/Degraded")
    assert team.message("Ready") == "1 of 2 members are ACTIVE; nobody is SPAWNING/UNKNOWN"


def test_phase_of_a_team_whose_members_all_failed() -> None:
    once = {"restart": {"maxRestarts": 0}}
    team = play(TeamSim(member("a", template=once), member("b", template=once)).settle())
    team.crash("crew-a").crash("crew-b")
    assert (str(team.status.phase), team.condition("Stalled")) == ("FAILED", "True/MembersFailed")


def test_a_team_of_200_is_under_100_kib_however_long_its_words() -> None:
    notes, now = {"notes": "n" * 3000}, TeamSim().wall
    members = [
        member(f"m{number:02}-{'x' * 40}", replicas=2, role="R" * 32, metadata=notes)
        for number in range(100)
    ]
    spec = TeamSpec.model_validate({"members": members, "restartRequest": "now"})
    wanted = wanted_agents("crew", spec)
    gone = MemberStatus(
        name="m" * 47, role="R" * 32, supervisor="s" * 52, agent_id="u" * 36, left_at=now
    )
    observed = TeamObserved(
        name="crew",
        namespace="default",
        uid="uid",
        generation=2,
        spec=spec,
        status=TeamStatus(observed_generation=1, members=[gone] * 50),
        agents={
            one.supervisor: AgentView(one.supervisor, "u" * 36, "uid", now, {}) for one in wanted
        },
    )
    status = dump_status(plan_team(observed, now).status)
    assert (len(status["members"]), len(status["order"]["members"])) == (250, 200)
    assert len(json.dumps(status, separators=(",", ":"))) < 100 * 1024
    assert [stay["metadata"] for stay in status["members"] if "metadata" in stay] == [notes] * 2


def test_a_quiet_team_writes_nothing() -> None:
    team = crew("OneForAll")
    writes = team.writes
    team.wait(60)
    assert team.writes == writes
    assert team.plan().actions == ()
