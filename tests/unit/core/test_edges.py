"""The edges of the lifecycle, one test each, by the names they have in the design."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor_operator.core.observed import AgentEnd, Refusal, RefusalKind
from supervisor_operator.core.plan import plan_supervisor
from tests.support.sim import Sim

NONE = {"source": "None"}


def running(**spec: Any) -> Sim:
    """An agent without beats that is ACTIVE."""
    return Sim(**({"heartbeat": NONE} | spec)).settle().start()


def beating(**spec: Any) -> Sim:
    """An agent of the defaults (30 s, 3 may be missed) that is ACTIVE."""
    return Sim(**spec).settle().start().beat()


def shown(sim: Sim) -> tuple[str, str, str]:
    return str(sim.status.phase), str(sim.status.health), sim.condition("Ready")


def test_created_paused() -> None:
    sim = Sim(operatingMode="Paused").settle()
    assert sim.created == []
    assert shown(sim) == ("PAUSED", "UNKNOWN", "True/Paused")


def test_paused_and_the_agent_exits() -> None:
    sim = running().edit(operatingMode="Paused").exit(3)
    assert sim.created == ["hello-r1"]
    assert shown(sim) == ("PAUSED", "UNKNOWN", "False/AgentDown")
    assert sim.status.last_termination is not None
    assert sim.status.last_termination.exit_code == 3
    sim.edit(operatingMode="Running")
    assert shown(sim)[2] == "False/BackOff", "judged at resume as if it happened then"
    sim.wait(5.6)
    assert sim.created == ["hello-r1", "hello-r2"]
    assert sim.status.restarts_counted == 1


def test_paused_and_the_pod_is_deleted() -> None:
    sim = running().edit(operatingMode="Paused").remove()
    assert shown(sim) == ("PAUSED", "UNKNOWN", "False/AgentDown")
    sim.edit(operatingMode="Running")
    assert sim.created == ["hello-r1", "hello-r2"]
    assert sim.status.restarts_counted == 0


def test_paused_during_back_off_then_resumed() -> None:
    sim = running().exit(3).edit(operatingMode="Paused").wait(60)
    assert sim.created == ["hello-r1"]
    due = sim.status.next_restart_time
    sim.edit(operatingMode="Running")
    assert due is not None
    assert due < sim.wall
    assert sim.created == ["hello-r1", "hello-r2"]


@pytest.mark.parametrize(
    "change", [{"agent": {"image": "b"}}, {"restartRequest": "now"}], ids=["template", "request"]
)
def test_paused_and_a_template_change_or_restart_request(change: dict[str, Any]) -> None:
    sim = running().edit(operatingMode="Paused", **change).wait(60)
    assert (sim.created, sim.deleted) == (["hello-r1"], [])
    sim.edit(operatingMode="Running").remove().start().wait(60)
    assert sim.created == ["hello-r1", "hello-r2"], "one restart, not two"


def test_paused_silence_is_not_judged() -> None:
    sim = beating().edit(operatingMode="Paused").silent(600)
    assert shown(sim) == ("PAUSED", "UNKNOWN", "True/Paused")
    assert sim.condition("Unresponsive") == "Unknown/NotJudged"


def test_failed_then_paused_then_running() -> None:
    sim = running(restart={"policy": "Never"}).exit(3)
    assert shown(sim) == ("FAILED", "UNKNOWN", "False/AgentExited")
    sim.edit(operatingMode="Paused")
    assert sim.status.phase == "PAUSED"
    sim.edit(operatingMode="Running").wait(60)
    assert shown(sim) == ("FAILED", "UNKNOWN", "False/AgentExited")


def test_stopped_during_back_off() -> None:
    sim = running().exit(3).edit(operatingMode="Stopped")
    assert shown(sim) == ("TERMINATED", "UNKNOWN", "True/Stopped")
    assert sim.status.next_restart_time is None
    sim.edit(operatingMode="Running")
    assert sim.created == ["hello-r1", "hello-r2"], "at once"
    assert sim.status.restarts_counted == 0


def test_template_change_in_back_off() -> None:
    sim = running().exit(3).edit(agent={"image": "b"})
    assert sim.created == ["hello-r1", "hello-r2"], "at once"
    assert sim.status.restarts_counted == 0


def test_restart_request_in_back_off() -> None:
    sim = running().exit(3).edit(restartRequest="now")
    assert sim.created == ["hello-r1", "hello-r2"]
    sim.start().wait(60)
    assert sim.created == ["hello-r1", "hello-r2"]
    assert sim.status.restarts_counted == 0


def test_restart_request_while_terminating() -> None:
    sim = running().change(terminating=True).edit(restartRequest="now").remove().start().wait(60)
    assert sim.created == ["hello-r1", "hello-r2"], "folded into the coming pod"
    assert sim.pod.request == "now"


def test_restart_request_present_at_creation_counts_as_handled() -> None:
    sim = running(restartRequest="old").wait(60)
    assert sim.created == ["hello-r1"]


def test_exit_0_with_policy_always() -> None:
    sim = running(restart={"policy": "Always"}).exit(0)
    assert shown(sim) == ("SPAWNING", "UNKNOWN", "False/BackOff")
    sim.wait(5.6)
    assert sim.status.restarts_counted == 1


@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
def test_exit_0_is_finished(policy: str) -> None:
    sim = running(restart={"policy": policy}).exit(0).wait(60)
    assert shown(sim) == ("TERMINATED", "UNKNOWN", "True/Succeeded")
    assert sim.condition("Succeeded") == "True/Succeeded"
    assert sim.created == ["hello-r1"]


@pytest.mark.parametrize(
    "end",
    [
        {"phase": "Failed", "reason": "Evicted", "running": False, "disrupted": True},
        {"phase": "Failed", "reason": "Preempting", "running": False, "disrupted": True},
        {"phase": "Failed", "running": False, "disrupted": True},
        {"phase": "Failed", "reason": "NodeShutdown", "running": False, "disrupted": True},
        {"phase": "Failed", "running": False, "terminating": True},
    ],
    ids=["evicted", "preempted", "drained", "node shut down", "deleted by hand"],
)
def test_uncounted_ends_are_restarted_at_once(end: dict[str, Any]) -> None:
    sim = running().change(**end)
    assert sim.created == ["hello-r1", "hello-r2"]
    assert (sim.status.restarts, sim.status.restarts_counted) == (1, 0)


def test_pod_gone_without_a_trace_is_restarted_at_once_and_the_server_is_asked_first() -> None:
    sim = running()
    sim.pods.clear()
    create = sim.plan().actions[0]
    assert getattr(create, "believed_gone", None) == "hello-r1"
    sim.settle()
    assert (sim.status.restarts, sim.status.restarts_counted) == (1, 0)


def test_oom_killed() -> None:
    sim = running().exit(137, "OOMKilled").wait(5.6)
    assert sim.status.last_termination is not None
    assert sim.status.last_termination.reason == "OOMKilled"
    assert sim.status.restarts_counted == 1


def test_node_dead_and_pod_terminating() -> None:
    sim = running().change(terminating=True).wait(39)
    assert shown(sim)[2] == "Unknown/Restarting"
    sim.wait(3600)
    assert sim.created == ["hello-r1"], "never two copies"
    assert shown(sim)[2] == "False/PodStuckTerminating"
    message = sim.status.conditions[0].message if sim.status.conditions else ""
    assert "node.kubernetes.io/out-of-service" in message
    assert "kubectl delete pod hello-r1 --force" in message


def test_heartbeat_deleted_by_hand() -> None:
    sim = beating()
    sim._missing.add(sim.pod.uid)
    assert [type(action).__name__ for action in sim.plan().actions] == ["CreateHeartbeat"]
    sim.settle()
    assert shown(sim) == ("ACTIVE", "HEALTHY", "True/HeartbeatFresh")


def test_startup_deadline_missed() -> None:
    sim = Sim().settle().start().silent(119)
    assert shown(sim) == ("SPAWNING", "UNKNOWN", "Unknown/Starting")
    sim.silent(2)
    assert sim.condition("Unresponsive") == "True/StartupTimeout"
    assert sim.killed == ["hello-r1"]
    sim.finish_kill().wait(6)
    assert sim.created == ["hello-r1", "hello-r2"]
    assert sim.status.restarts_counted == 1


def test_pending_is_never_restarted() -> None:
    sim = running().remove()
    sim.change(waiting="Unschedulable", waiting_message="0/3 nodes are available")
    assert shown(sim) == ("SPAWNING", "UNKNOWN", "Unknown/Unschedulable")
    assert sim.condition("Stalled") == "-"
    sim.wait(601)
    assert shown(sim) == ("SPAWNING", "UNKNOWN", "Unknown/Unschedulable")
    assert sim.condition("Stalled") == "True/ProgressDeadlineExceeded"
    assert sim.created == ["hello-r1", "hello-r2"]


def test_killing_an_agent_that_hangs() -> None:
    sim = beating().silent(119)
    assert (shown(sim), sim.killed) == (("ACTIVE", "HEALTHY", "True/HeartbeatFresh"), [])
    sim.silent(1)
    assert shown(sim) == ("ACTIVE", "UNRESPONSIVE", "False/HeartbeatsMissed")
    assert sim.killed == ["hello-r1"]
    assert sim.created == ["hello-r1"]
    sim.finish_kill().wait(6).start().beat()
    assert shown(sim) == ("ACTIVE", "HEALTHY", "True/HeartbeatFresh")
    assert sim.status.restart_summary == "1/3"
    assert sim.status.last_termination is not None
    assert sim.status.last_termination.reason == "HeartbeatsMissed"
    assert sim.status.last_termination.message == "last words"


def test_the_verdict_is_in_status_before_the_kill() -> None:
    sim = beating()
    sim.mono += 120
    sim.relay_only()
    plan = sim.plan()
    assert plan.actions == ()
    assert [note.reason for note in plan.notes] == ["Unresponsive", "RestartScheduled"]


def test_an_exit_is_in_status_before_the_next_run_starts() -> None:
    """Where there is no delay to wait for: a crash right after the create forgets no exit."""
    sim = beating()
    sim._set(sim.pod, phase="Failed", reason="Evicted", disrupted=True, running=False)
    assert sim.plan().actions == ()
    sim.one_pass()
    assert sim.status.last_termination is not None
    assert [type(action).__name__ for action in sim.plan().actions] == ["CreatePod"]


def test_ended_by_itself_before_the_kill_took_hold_is_judged_by_its_exit() -> None:
    sim = beating().silent(120)
    assert sim.killed == ["hello-r1"]
    sim.exit(0)
    assert shown(sim) == ("TERMINATED", "UNKNOWN", "True/Succeeded")


def test_exit_0_on_sigterm_while_being_ended_is_no_success() -> None:
    sim = beating().silent(120).finish_kill(code=0)
    assert shown(sim)[2] == "False/BackOff"


def test_exit_code_rules_do_not_apply_to_a_kill_of_ours() -> None:
    rules = [{"codes": [137], "action": "Fail"}]
    sim = beating(restart={"exitCodes": rules}).silent(120).finish_kill()
    assert shown(sim)[2] == "False/BackOff"


def test_the_users_own_deadline_is_a_failure_like_any_other() -> None:
    sim = running().change(phase="Failed", reason="DeadlineExceeded", running=False)
    assert shown(sim)[2] == "False/BackOff"
    sim.wait(5.6)
    assert sim.status.restarts_counted == 1


def test_kill_under_way() -> None:
    sim = beating().silent(120).beat()
    assert shown(sim) == ("ACTIVE", "UNRESPONSIVE", "False/HeartbeatsMissed"), (
        "beats change nothing"
    )
    assert sim.condition("Reconciling") == "True/Restarting"
    assert sim.status.restarts == 0


def test_kill_not_finished_after_grace_and_30_s() -> None:
    sim = beating().silent(120).wait(61)
    assert shown(sim)[2] == "False/PodStuckTerminating"
    assert sim.condition("Reconciling") == "True/Restarting"
    sim.wait(3600)
    assert (sim.created, sim.status.restarts_counted) == (["hello-r1"], 0)


def test_giving_up_on_a_frozen_agent() -> None:
    sim = beating(restart={"maxRestarts": 0})
    sim.mono += 120
    sim.relay_only().one_pass()
    assert shown(sim)[2] == "False/RestartBudgetExhausted", "outcome at the verdict"
    assert sim.killed == [], "and then the kill"
    sim.settle()
    assert sim.killed == ["hello-r1"]
    sim.finish_kill().wait(3600)
    assert shown(sim) == ("FAILED", "UNKNOWN", "False/RestartBudgetExhausted")
    assert sim.condition("Stalled") == "True/RestartBudgetExhausted"
    assert list(sim.pods) == ["hello-r1"], "kept to be read"


def test_finished_pod_removed_with_its_exit_on_record() -> None:
    sim = running().exit(3).remove()
    assert shown(sim)[2] == "False/BackOff"
    sim.wait(5.6)
    assert sim.status.restarts_counted == 1


def test_finished_pod_removed_before_its_exit_was_seen() -> None:
    sim = running()
    sim.pods.clear()
    sim.settle()
    assert (sim.created, sim.status.restarts_counted) == (["hello-r1", "hello-r2"], 0)


def test_agent_ended_while_other_containers_run_on() -> None:
    sim = running()
    sim.change(running=False, others_running=True, end=AgentEnd(exit_code=3, reason="Error"))
    assert sim.killed == ["hello-r1"]
    assert sim.pod.ended_by == "AgentExited"
    sim.finish_kill(code=3)
    assert shown(sim)[2] == "False/BackOff"
    assert sim.status.last_termination is not None
    assert sim.status.last_termination.reason == "Error"


@pytest.mark.parametrize(
    ("keep", "left"), [(0, []), (1, ["hello-r3"]), (2, ["hello-r2", "hello-r3"])]
)
def test_keep_finished_pods(keep: int, left: list[str]) -> None:
    sim = running(restart={"keepFinishedPods": keep})
    for _ in range(3):
        sim.exit(3).wait(60).start()
    assert [name for name in sim.pods if sim.pods[name].finished] == left


def test_failed_keeps_its_last_pod_even_with_0() -> None:
    sim = running(restart={"keepFinishedPods": 0, "policy": "Never"}).exit(3).wait(60)
    assert list(sim.pods) == ["hello-r1"]


def test_stopped_removes_the_unfinished_pod_only() -> None:
    sim = running().exit(3).wait(6).start().edit(operatingMode="Stopped")
    assert sim.deleted == ["hello-r2"]
    sim.remove("hello-r2")
    assert list(sim.pods) == ["hello-r1"]
    assert shown(sim) == ("TERMINATED", "UNKNOWN", "True/Stopped")
    assert sim.status.pod_uid is None


def test_pod_create_refused_as_invalid() -> None:
    sim = Sim()
    sim.refuse = Refusal(RefusalKind.TEMPLATE, "spec.containers[0].image: Required value")
    sim.settle()
    assert shown(sim) == ("FAILED", "UNKNOWN", "False/InvalidTemplate")
    assert sim.condition("Stalled") == "True/InvalidTemplate"
    assert sim.plan().actions == (), "no retry without an edit"
    sim.refuse = None
    sim.edit(agent={"image": "b"})
    assert sim.created == ["hello-r1"]


def test_pod_create_forbidden_heals_without_an_edit() -> None:
    sim = Sim()
    sim.refuse = Refusal(RefusalKind.CREATE, "exceeded quota")
    sim.settle()
    assert shown(sim) == ("SPAWNING", "UNKNOWN", "False/CreateRefused")
    sim.refuse = None
    sim.settle()
    assert shown(sim)[2] == "Unknown/Starting"
    assert sim.condition("Stalled") == "-"


def test_template_changed_and_refused_leaves_the_old_pod_running() -> None:
    sim = running()
    sim.refuse_try = Refusal(RefusalKind.TEMPLATE, "no such field")
    sim.edit(agent={"image": "b"})
    assert sim.deleted == []
    assert shown(sim) == ("ACTIVE", "HEALTHY", "False/InvalidTemplate")
    assert sim.plan().actions == (), "asked once per edit"
    sim.refuse_try = None
    sim.edit(agent={"image": "c"})
    assert sim.deleted == ["hello-r1"]
    sim.remove().start()
    assert shown(sim) == ("ACTIVE", "HEALTHY", "True/PodReady")


def test_update_strategy_on_delete_waits_for_somebody_to_delete_the_pod() -> None:
    sim = running(updateStrategy={"type": "OnDelete"}).edit(agent={"image": "b"}).wait(60)
    assert sim.deleted == []
    old = sim.pod.template_hash
    sim.remove()
    assert sim.created == ["hello-r1", "hello-r2"]
    assert sim.pod.template_hash != old


@pytest.mark.parametrize(
    "change",
    [
        {"heartbeat": {"source": "None", "missedThreshold": 9}},
        {"restart": {"maxRestarts": 9}},
        {"heartbeat": {"source": "None", "intervalSeconds": 30}},
        {"agent": {"image": "a", "terminationGracePeriodSeconds": 10}},
        {"description": "words"},
    ],
    ids=["threshold", "budget", "a default spelled out", "grace spelled out", "description"],
)
def test_changes_that_restart_nobody(change: dict[str, Any]) -> None:
    sim = running().edit(**change).wait(60)
    assert (sim.created, sim.deleted) == (["hello-r1"], [])


def test_operator_starts_and_a_stored_verdict_stays() -> None:
    sim = beating(restart={"onUnresponsive": "MarkOnly"}).silent(130).restart_operator()
    assert shown(sim) == ("ACTIVE", "UNRESPONSIVE", "False/HeartbeatsMissed")
    sim.wait(30)
    assert sim.status.health == "UNRESPONSIVE"
    sim.beat()
    assert shown(sim) == ("ACTIVE", "HEALTHY", "True/HeartbeatFresh")


def test_operator_dies_between_verdict_and_kill_and_the_agent_came_back() -> None:
    sim = beating()
    sim.mono += 120
    sim.relay_only().one_pass()
    assert sim.status.health == "UNRESPONSIVE"
    sim.restart_operator().wait(60)
    assert sim.killed == [], "one full allowance before anything is done"
    sim.beat()
    assert sim.status.health == "HEALTHY"


def test_wiped_status_is_rebuilt_from_pods() -> None:
    sim = running().exit(3).wait(6).start().exit(3)
    sim.wipe_status().settle()
    assert shown(sim)[2] == "False/BackOff"
    assert (sim.status.run, sim.status.restarts_counted) == (2, 1)
    sim.wait(12)
    assert sim.status.restarts_counted == 2
    assert sim.created == ["hello-r1", "hello-r2", "hello-r3"]


def test_a_wiped_status_remembers_which_runs_are_forgiven() -> None:
    sim = beating().edit(agent={"image": "b"}).remove().start().beat()
    forgiven = sim.status.forgiven_run
    assert forgiven == 1
    assert sim.wipe_status().settle().status.forgiven_run == forgiven


def test_agent_removed_from_spec_and_given_back() -> None:
    sim = running().edit(agent=None)
    assert sim.deleted == ["hello-r1"]
    sim.remove()
    assert shown(sim) == ("ACTIVE", "HEALTHY", "True/NoChildren")
    sim.edit(agent={"image": "a"})
    assert sim.created == ["hello-r1", "hello-r2"]


def test_policy_missing_starts_nobody_who_beats() -> None:
    sim = Sim()
    sim.policy_present = False
    sim.settle()
    assert (sim.created, shown(sim)) == ([], ("SPAWNING", "UNKNOWN", "False/PolicyMissing"))
    sim.policy_present = True
    sim.settle()
    assert sim.created == ["hello-r1"]


def test_budget_used_up_then_the_way_out() -> None:
    sim = running()
    for _ in range(4):
        sim.exit(3).wait(60)
        if sim.status.phase == "FAILED":
            break
        sim.start()
    assert sim.created == ["hello-r1", "hello-r2", "hello-r3", "hello-r4"]
    assert shown(sim) == ("FAILED", "UNKNOWN", "False/RestartBudgetExhausted")
    assert sim.status.restart_summary == "3/3"
    sim.edit(restartRequest="fixed it").start()
    assert shown(sim) == ("ACTIVE", "HEALTHY", "True/PodReady")
    assert sim.status.restart_summary == "0/3"
    assert sim.created[-1] == "hello-r5"


def test_counter_back_to_0_after_long_enough_in_good_health() -> None:
    sim = running().exit(3).wait(6).start()
    assert sim.status.restart_summary == "1/3"
    sim.wait(599)
    assert sim.status.restart_summary == "1/3"
    sim.wait(2)
    assert sim.status.restart_summary == "0/3"
    sim.exit(3)
    assert shown(sim)[2] == "False/BackOff", "a crash after that counts again, with its delay"
    sim.wait(6)
    assert sim.status.restart_summary == "1/3"


def test_ignored_exit_codes_restart_uncounted_with_growing_delay() -> None:
    rules = [{"codes": [7], "action": "Ignore"}]
    sim = running(restart={"exitCodes": rules, "maxRestarts": 0})
    delays = []
    for _ in range(3):
        sim.exit(7)
        due = sim.status.next_restart_time
        assert due is not None
        delays.append((due - sim.wall).total_seconds())
        sim.wait(60).start()
    assert sim.status.restarts_counted == 0
    assert [round(delay // 5) for delay in delays] == [1, 2, 4]


@pytest.mark.parametrize(
    ("action", "ready"),
    [("Fail", "False/ExitCodeRule"), ("Complete", "True/Succeeded"), ("Restart", "False/BackOff")],
)
def test_exit_code_rules(action: str, ready: str) -> None:
    sim = running(restart={"exitCodes": [{"codes": [7, 0], "action": action}]}).exit(7)
    assert shown(sim)[2] == ready


def test_kill_patch_refused_is_told_and_no_delete_takes_its_place() -> None:
    sim = beating()
    sim.mono += 120
    sim.relay_only().one_pass()
    refused = sim.observe(Refusal(RefusalKind.KILL, "pods may not be patched"))
    plan = plan_supervisor(refused, sim.now())
    assert plan.actions == ()
    said = {one.type: f"{one.status}/{one.reason}" for one in plan.status.conditions or ()}
    assert (said["Ready"], said["Stalled"]) == ("False/KillRefused", "True/KillRefused")
    assert plan.status.health == "UNRESPONSIVE"
