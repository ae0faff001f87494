"""What to do now, for each reason that the operator gives for the condition Ready."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import datetime

from supervisor_operator.api.v1alpha1.meta import OperatingMode
from supervisor_operator.core.health.steps import Asker, Step
from supervisor_operator.core.health.subject import Subject
from supervisor_operator.core.pods import RELAY
from supervisor_operator.core.steer import Order
from supervisor_operator.core.words import ConditionType, Reason

NOTHING = "Nothing needs to be done."
BY_BEATS = {Reason.HEARTBEATS_MISSED, Reason.STARTUP_TIMEOUT, Reason.NODE_UNREACHABLE}
POLICY = "supervision-heartbeats"


def next_step(subject: Subject, now: datetime) -> Step:
    asker = Asker(subject, now)
    if subject.reconciling == Reason.PENDING:
        return _pending(asker)
    if subject.reconciling == Reason.REMEDIATION_HELD and subject.reason in BY_BEATS:
        return _held(asker)
    advice = ADVICE.get(subject.reason)
    return advice(asker) if advice else _read(asker)


def _nothing(_asker: Asker) -> Step:
    return Step(NOTHING)


def _read(asker: Asker) -> Step:
    name = asker.subject.name
    return Step("Read its conditions and events.", (asker.describe("sup", name),))


def _wait(asker: Asker) -> Step:
    name = asker.subject.name
    text = "Wait: the operator is at work. Its progress can be watched."
    return Step(text, (asker.kubectl("get", "sup", name, "-w"),))


def _starting(asker: Asker) -> Step:
    limit = asker.subject.spec.heartbeat.startup_seconds
    text = f"Wait for it to start; without a first heartbeat within {limit} s it is restarted."
    return Step(text, (asker.logs("--all-containers"), asker.describe("pod", asker.pod)))


def _pending(asker: Asker) -> Step:
    text = "The pod cannot start: correct what its events say."
    if not asker.subject.is_true(ConditionType.STALLED):
        text = "Wait for the pod to start; if it does not, its events say why."
    return Step(text, (asker.describe("pod", asker.pod),))


def _silent(asker: Asker) -> Step:
    if asker.subject.is_true(ConditionType.STALLED):
        return Step(
            "Find out why it hangs, then restart it: restart.onUnresponsive is MarkOnly, so nobody"
            " else will.",
            (asker.logs(), asker.steer(Order.RESTART)),
        )
    text = "Wait: it is being restarted. Its log may tell why it hangs."
    return Step(text, (asker.logs(),))


def _held(asker: Asker) -> Step:
    node = asker.subject.status.node_name
    if asker.subject.reason == Reason.NODE_UNREACHABLE and node:
        return Step(
            "Look at its node: the agent is not restarted while nobody can reach it.",
            (shlex.join(["kubectl", "describe", "node", node]),),
        )
    return Step(
        "Find out what the silent agents have in common; to restart this one all the same, ask"
        " for it.",
        (asker.kubectl("get", "sup,hb"), asker.steer(Order.RESTART)),
    )


def _relay_down(asker: Asker) -> Step:
    return Step(
        "Find out why the relay does not run; the agent is left alone until it does.",
        (asker.describe("pod", asker.pod), asker.logs("-c", RELAY)),
    )


def _back_off(asker: Asker) -> Step:
    if asker.subject.reconciling == Reason.REMEDIATION_HELD:
        return _team_holds(asker)
    due = asker.subject.status.next_restart_time
    when = f" at {due.isoformat(timespec='seconds')}" if due else ""
    return Step(
        f"Wait: it is restarted{when}. Its last words may tell why it ended; a restart request"
        " starts it at once.",
        (asker.last_words(), asker.steer(Order.RESTART)),
    )


def _kill_refused(asker: Asker) -> Step:
    return Step(
        "The agent hangs and the operator may not end its pod: end it yourself, or lift what the"
        " cause names.",
        (asker.kubectl("delete", "pod", asker.pod),),
    )


def _team_holds(asker: Asker) -> Step:
    team = asker.subject.status.member_of
    commands = (asker.describe("supteam", team.team),) if team else ()
    return Step("Repair other members of its team first: too many are unhealthy.", commands)


def _team_waits(asker: Asker) -> Step:
    team = asker.subject.status.member_of
    commands = (asker.describe("supteam", team.team),) if team else ()
    return Step("Wait: its team restarts the members together, in order.", commands)


def _updating(asker: Asker) -> Step:
    text = "Wait: a pod of the new template replaces the old one."
    return Step(text, (asker.kubectl("get", "sup", asker.subject.name, "-w"),))


def _stuck(asker: Asker) -> Step:
    return Step(
        "Look at the node. Where it is lost for good, remove the pod by force: only then can the"
        " next run start.",
        (
            asker.describe("pod", asker.pod),
            asker.kubectl("delete", "pod", asker.pod, "--force", "--grace-period=0"),
        ),
    )


def _edit_agent(asker: Asker) -> Step:
    text = "Correct spec.agent as the cause says."
    return Step(text, (asker.kubectl("edit", "sup", asker.subject.name),))


def _edit(asker: Asker) -> Step:
    text = "Correct the field that the cause names."
    return Step(text, (asker.kubectl("edit", "sup", asker.subject.name),))


def _create_refused(asker: Asker) -> Step:
    return Step(
        "Lift what the cause names: a quota, a policy or a missing right. The operator tries again"
        " by itself.",
        (
            asker.kubectl("get", "resourcequota,limitrange"),
            asker.describe("sup", asker.subject.name),
        ),
    )


def _name_conflict(asker: Asker) -> Step:
    return Step(
        "Remove or rename the object that the cause names; it is not the operator's.",
        (asker.describe("sup", asker.subject.name),),
    )


def _policy_missing(_asker: Asker) -> Step:
    return Step(
        "Have a cluster administrator install the admission policies: without them nobody may"
        " beat.",
        (
            shlex.join(["kubectl", "get", "validatingadmissionpolicy", POLICY]),
            "kubectl apply -k manifests/policies",
        ),
    )


def _failed(asker: Asker) -> Step:
    return Step(
        "Read its last words, correct the cause, then ask for a restart.",
        (asker.last_words(), asker.steer(Order.RESTART)),
    )


def _team_failed(asker: Asker) -> Step:
    team = asker.subject.status.member_of
    look = (asker.describe("supteam", team.team),) if team else ()
    return Step(
        "Read its last words, correct the cause, then set restartRequest of its team to a new"
        " value.",
        (asker.last_words(), *look),
    )


def _child_failed(asker: Asker) -> Step:
    outcome = asker.subject.status.outcome
    child = outcome.child if outcome else None
    look = asker.describe("sup", child) if child else asker.kubectl("get", "sup")
    return Step(
        "Correct what made the child fail, then ask for a restart here: it starts the child too.",
        (look, asker.steer(Order.RESTART)),
    )


def _children(asker: Asker) -> Step:
    text = "Look at the children that the cause names."
    return Step(text, (asker.kubectl("get", "sup"),))


def _again(asker: Asker) -> Step:
    return Step(f"{NOTHING} A restart request runs it again.", (asker.steer(Order.RESTART),))


def _paused(asker: Asker) -> Step:
    if asker.subject.spec.operating_mode is OperatingMode.PAUSED:
        return Step("Resume it when you are done.", (asker.steer(Order.RESUME),))
    return Step("Resume the team or supervisor that the cause names.", _above(asker))


def _stopped(asker: Asker) -> Step:
    if asker.subject.spec.operating_mode is OperatingMode.STOPPED:
        return Step("Start it when it is wanted again.", (asker.steer(Order.START),))
    return Step("Start the team or supervisor that the cause names.", _above(asker))


def _above(asker: Asker) -> tuple[str, ...]:
    team, parent = asker.subject.status.member_of, asker.subject.spec.parent_ref
    looks = [("supteam", team.team)] if team else []
    looks += [("sup", parent.name)] if parent else []
    return tuple(asker.kubectl("get", kind, name) for kind, name in looks)


ADVICE: dict[str, Callable[[Asker], Step]] = {
    Reason.HEARTBEAT_FRESH: _nothing,
    Reason.POD_READY: _nothing,
    Reason.NO_CHILDREN: _nothing,
    Reason.CHILDREN_HEALTHY: _nothing,
    Reason.CHILDREN_FINISHED: _nothing,
    Reason.CHILDREN_PAUSED: _nothing,
    Reason.CHILDREN_STOPPED: _nothing,
    Reason.STARTING: _starting,
    Reason.RESTARTING: _wait,
    Reason.RESTART_REQUESTED: _wait,
    Reason.STOPPING: _wait,
    Reason.CHILDREN_STARTING: _wait,
    Reason.UPDATING: _updating,
    Reason.HEARTBEATS_MISSED: _silent,
    Reason.STARTUP_TIMEOUT: _silent,
    Reason.RELAY_DOWN: _relay_down,
    Reason.KILL_REFUSED: _kill_refused,
    Reason.BACK_OFF: _back_off,
    Reason.WAITING_FOR_TEAM: _team_waits,
    Reason.POD_STUCK: _stuck,
    Reason.INVALID_TEMPLATE: _edit_agent,
    Reason.INVALID_SPEC: _edit,
    Reason.CREATE_REFUSED: _create_refused,
    Reason.NAME_CONFLICT: _name_conflict,
    Reason.POLICY_MISSING: _policy_missing,
    Reason.BUDGET_EXHAUSTED: _failed,
    Reason.AGENT_EXITED: _failed,
    Reason.EXIT_CODE_RULE: _failed,
    Reason.TEAM_EXHAUSTED: _team_failed,
    Reason.CHILD_FAILED: _child_failed,
    Reason.CHILDREN_FAILED: _children,
    Reason.DEGRADED: _children,
    Reason.SUCCEEDED: _again,
    Reason.PAUSED: _paused,
    Reason.AGENT_DOWN: _paused,
    Reason.STOPPED: _stopped,
}
