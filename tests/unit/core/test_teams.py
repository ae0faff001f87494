"""Teams: members, orders, budgets and the roll-up, one test per row of the design's table."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor_operator.api.v1alpha1.team_status import TeamOrder, TeamStatus
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
    assert team.agents["crew-a"].uid == uid
    stays = [(stay.name, stay.left_at is not None) for stay in team.status.members or ()]
    assert stays == [("a", False), ("z", False), ("b", True)]


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


def test_the_trigger_counts_and_its_siblings_do_not() -> None:
    team = play(crew("OneForAll").crash("crew-b"))
    counted = {name: sim.status.restart_summary for name, sim in team.agents.items()}
    assert counted == {"crew-a": "0/3", "crew-b": "1/3", "crew-c": "0/3"}
    reasons = {name: sim.pod.run_reason for name, sim in team.agents.items()}
    assert set(reasons.values()) == {"GroupRestart"}


def test_the_next_starts_only_when_the_one_before_is_active() -> None:
    team = crew("OneForAll").crash("crew-a").reap().wait(10)
    assert team.pods() == ["crew-a-r2"]
    team.wait(10)
    assert team.pods() == ["crew-a-r2"]
    team.start("crew-a").wait(2)
    assert team.pods() == ["crew-a-r2", "crew-b-r2"]


def test_the_triggers_delay_is_kept() -> None:
    team = crew("OneForAll").crash("crew-b").reap().wait(3)
    assert team.pods() == []
    team.wait(4)
    assert team.pods() == ["crew-a-r2"]


@pytest.mark.parametrize("end", ["evicted", "deleted", "finished"])
def test_uncounted_ends_concern_that_agent_alone(end: str) -> None:
    team = crew("OneForAll")
    sim = team._sync(team.agents["crew-b"])
    match end:
        case "evicted":
            sim.change(phase="Failed", reason="Evicted", disrupted=True, running=False)
        case "deleted":
            sim.remove()
        case _:
            sim.exit(0)
    play(team.settle())
    assert team.status.order is None
    assert team.agents["crew-a"].created == ["crew-a-r1"]


def test_an_order_is_in_status_before_anyone_acts() -> None:
    team = crew("OneForAll")
    team._sync(team.agents["crew-b"]).exit(3)
    plan = team.plan()
    assert plan.status.order is not None
    assert plan.status.order.id == 1
    assert team.pods() == ["crew-a-r1", "crew-c-r1"]


def test_a_failure_during_an_order_belongs_to_it() -> None:
    team = crew("OneForAll").crash("crew-b").crash("crew-a")
    play(team)
    assert team.status.order is not None
    assert team.status.order.id == 1
    assert {name: len(sim.created) for name, sim in team.agents.items()} == dict.fromkeys(ABC, 2)


def test_a_failure_of_a_pod_of_the_order_leads_to_the_next_one() -> None:
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


def test_the_members_own_budget_used_up_is_failed_without_an_order() -> None:
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


def test_max_unhealthy_holds_restarts_back() -> None:
    team = crew(maxUnhealthy=1).crash("crew-a").crash("crew-b")
    play(team)
    assert team.condition("RemediationAllowed") == "False/TooManyUnhealthy"
    assert team.pods() == ["crew-c-r1"]
    team.edit(maxUnhealthy=2)
    play(team)
    assert team.phases() == dict.fromkeys(ABC, "ACTIVE")


def test_max_unhealthy_of_0_percent_is_legal_and_says_so() -> None:
    team = crew(maxUnhealthy="0%")
    assert team.condition("RemediationAllowed") == "True/WithinLimit"
    team.crash("crew-a").wait(30)
    assert team.condition("RemediationAllowed") == "False/TooManyUnhealthy"
    assert team.pods() == ["crew-b-r1", "crew-c-r1"]


def test_max_concurrent_restarts_gives_slots_in_list_order() -> None:
    team = crew(maxConcurrentRestarts=1)
    for name in ABC:
        team.crash(name)
    team.wait(10)
    assert team.pods() == ["crew-a-r2"]
    team.start("crew-a").wait(2)
    assert team.pods() == ["crew-a-r2", "crew-b-r2"]


@pytest.mark.parametrize(
    ("mode", "phase", "pods"), [("Paused", "PAUSED", 3), ("Stopped", "TERMINATED", 0)]
)
def test_the_teams_mode_overrides_its_members(mode: str, phase: str, pods: int) -> None:
    team = crew().edit(operatingMode=mode).reap()
    assert set(team.phases().values()) == {phase}
    assert (str(team.status.phase), len(team.pods())) == (phase, pods)
    play(team.edit(operatingMode="Running"))
    assert set(team.phases().values()) == {"ACTIVE"}


def test_a_team_made_before_its_supervisor_waits_without_pods() -> None:
    team = TeamSim(member("a"), supervisorRef={"name": "boss"})
    team.supervisor_there = False
    team.settle().wait(60)
    assert (team.pods(), team.condition("SupervisorResolved")) == ([], "False/SupervisorNotFound")
    team.supervisor_there = True
    team.settle().start()
    assert team.phases() == {"crew-a": "ACTIVE"}


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


def test_a_quiet_team_writes_nothing() -> None:
    team = crew("OneForAll")
    writes = team.writes
    team.wait(60)
    assert team.writes == writes
    assert team.plan().actions == ()
