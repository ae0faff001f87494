"""Judges a Supervisor whose newest run is over, gone or never was: when the next one starts."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from supervisor_operator.api.v1alpha1.policies import UpdateStrategyType
from supervisor_operator.api.v1alpha1.supervisor_status import LastTermination, OutcomeType
from supervisor_operator.core.actions import CreatePod
from supervisor_operator.core.decision import Case, Decision
from supervisor_operator.core.ending import HANGS, LOST, Fate, Judgement, judge
from supervisor_operator.core.ledger import Ledger
from supervisor_operator.core.refusals import refuse_template
from supervisor_operator.core.states import State
from supervisor_operator.core.telling import tell_back_off, tell_budget, tell_end
from supervisor_operator.core.template import TemplateProblemError, build_pod, pod_name
from supervisor_operator.core.words import Reason, RunReason

TURN_SECONDS = 1.0
AT_ONCE = Judgement(Fate.RESTART)
AGENTLESS = {
    Reason.STOPPED,
    Reason.NO_CHILDREN,
    Reason.CHILDREN_STARTING,
    Reason.CHILDREN_HEALTHY,
    Reason.CHILDREN_FAILED,
    Reason.CHILDREN_FINISHED,
    Reason.CHILDREN_PAUSED,
    Reason.CHILDREN_STOPPED,
    Reason.DEGRADED,
}
NEXT_STEP = "apply manifests/policies, or set heartbeat.source to None"


def judge_next_run(case: Case) -> Decision:
    end = case.recorded or (case.newest_end() if case.newest else None)
    judgement = _judge(case, end)
    match judgement.fate:
        case Fate.FINISHED:
            outcome = case.ended_for_good(OutcomeType.FINISHED, judgement.reason)
            message = f"Finished in run {case.ledger.run}"
            return Decision(State.FINISHED, message, case.ledger, outcome=outcome, ended=end)
        case Fate.FAILED:
            return _fail(case, end, judgement.reason)
        case Fate.RESTART:
            return _restart(case, end, judgement)


def _judge(case: Case, end: LastTermination | None) -> Judgement:
    if case.is_settled or end is None or _is_renewed(case):
        return AT_ONCE
    return judge(end, case.spec.restart, case.ledger, case.observed.uid)


def _is_renewed(case: Case) -> bool:
    """The spec asks for another run than the one that ended: no delay, and a full budget."""
    pod = case.newest
    if pod is None:
        return False
    request = case.spec.restart_request
    is_asked = bool(request) and request != pod.request
    replaces = case.spec.update_strategy.type is UpdateStrategyType.RECREATE
    return is_asked or (replaces and pod.template_hash != case.wanted_hash)


def _fail(case: Case, end: LastTermination | None, reason: str) -> Decision:
    how = tell_end(end) if end else "lost"
    name = pod_name(case.observed.name, case.ledger.run)
    message = f"Pod {name} ended: {how}; {tell_budget(case, reason)}"
    outcome = case.failed(reason)
    return Decision(State.FAILED, message, case.ledger, reason=reason, outcome=outcome, ended=end)


def _restart(case: Case, end: LastTermination | None, judgement: Judgement) -> Decision:
    if is_covered(case):
        return _by_order(case, end, judgement)
    link = case.observed.team
    if link and link.waits_for_order and judgement.counts:
        return _call_the_team(case, end, judgement)
    due = _due(case, judgement)
    wait = (due - case.now.wall).total_seconds()
    is_on_record = end is None or (case.recorded is not None and not _lacks_time(case, judgement))
    held = _held_back(case, judgement)
    if is_on_record and wait <= 0 and not held:
        return _create(case, end, judgement)
    name = pod_name(case.observed.name, case.ledger.run)
    nth = _nth(case, judgement)
    message = tell_back_off(end, name, due, nth=nth) + held
    state = State.BACK_OFF if judgement.delay else State.RESTARTING
    if link and not link.allowed and held:
        state = State.BACK_OFF_HELD
    return Decision(
        state,
        message,
        case.ledger,
        next_restart=due if judgement.delay else None,
        ended=end,
        check_in=max(wait, TURN_SECONDS if held else 0.0),
    )


def is_covered(case: Case) -> bool:
    """The newest run ended under an order of the team that is still to be obeyed."""
    link = case.observed.team
    if link is None or not link.in_order or case.ledger.run == 0:
        return False
    return case.order < link.order


def _by_order(case: Case, end: LastTermination | None, judgement: Judgement) -> Decision:
    """Start when it is our turn; only the member whose failure led to the order counts it."""
    link = case.observed.team
    is_on_record = end is None or case.recorded is not None
    if link and link.may_start and is_on_record:
        return _create(case, end, replace(judgement, counts=judgement.counts and link.is_trigger))
    waiting = _wait_for_team(case, end, judgement, "it starts when its turn in the group comes")
    return replace(waiting, check_in=TURN_SECONDS)


def _call_the_team(case: Case, end: LastTermination | None, judgement: Judgement) -> Decision:
    link = case.observed.team
    if link and link.exhausted:
        return _fail(case, end, Reason.TEAM_EXHAUSTED)
    return _wait_for_team(case, end, judgement, "its team restarts as a group")


def _wait_for_team(
    case: Case, end: LastTermination | None, judgement: Judgement, why: str
) -> Decision:
    how = tell_end(end) if end else "stopped"
    name = pod_name(case.observed.name, case.ledger.run)
    return Decision(
        State.WAITING_FOR_TEAM,
        f"Pod {name} ended: {how}; {why}",
        case.ledger,
        next_restart=_due(case, judgement) if judgement.counts else None,
        ended=end,
    )


def _held_back(case: Case, judgement: Judgement) -> str:
    """Why the team does not let a failed agent start yet; empty where it does."""
    link = case.observed.team
    if link is None or not judgement.counts:
        return ""
    if not link.allowed:
        return "; held back: more members are unhealthy than maxUnhealthy"
    if not link.has_slot:
        return "; it waits for its turn (maxConcurrentRestarts)"
    return ""


def _lacks_time(case: Case, judgement: Judgement) -> bool:
    return bool(judgement.delay) and case.next_restart is None


def _due(case: Case, judgement: Judgement) -> datetime:
    """When the next run may start; a time far off means a clock that was set, and is cut."""
    latest = case.now.after(judgement.delay)
    planned = case.next_restart
    if not judgement.delay or planned is None:
        return latest
    return min(planned, latest)


def _nth(case: Case, judgement: Judgement) -> str:
    if not judgement.counts:
        return "next run (not counted)"
    return f"restart {case.ledger.counted + 1} of {case.spec.restart.max_restarts}"


def _create(case: Case, end: LastTermination | None, judgement: Judgement) -> Decision:
    if case.beats and not case.observed.policy_present:
        message = (
            "The admission policy that binds a Heartbeat to its pod is not installed, so agents "
            f"get no right to beat and none is started: {NEXT_STEP}"
        )
        return Decision(State.POLICY_MISSING, message, case.ledger, ended=end)
    reason = _reason(case, end)
    ledger = _next_ledger(case, judgement, reason)
    try:
        manifest = build_pod(case.observed, ledger, reason)
    except TemplateProblemError as problem:
        return refuse_template(case, str(problem))
    name = manifest["metadata"]["name"]
    is_unseen_end = end is None and case.ledger.run > 0 and not case.is_settled
    before = pod_name(case.observed.name, case.ledger.run) if is_unseen_end else None
    action = CreatePod(manifest, f"{reason}: start {name}", case.beats, before)
    return Decision(
        State.STARTING, f"Pod {name} is starting", case.ledger, ended=end, actions=(action,)
    )


def _next_ledger(case: Case, judgement: Judgement, reason: RunReason) -> Ledger:
    ledger = case.ledger.forgive() if _is_renewed(case) else case.ledger
    is_restart = reason not in {RunReason.FIRST, RunReason.STARTED}
    return ledger.next_run(counts=judgement.counts, is_restart=is_restart)


def _reason(case: Case, end: LastTermination | None) -> RunReason:
    """Why there is a new run, in one word for people."""
    said = case.ready_reason
    is_outdated = case.newest is not None and case.newest.template_hash != case.wanted_hash
    is_asked = said == Reason.RESTART_REQUESTED or case.is_settled or _is_renewed(case)
    reasons = (
        (case.ledger.run == 0, RunReason.FIRST),
        (said in AGENTLESS, RunReason.STARTED),
        (is_covered(case), RunReason.GROUP),
        (said == Reason.UPDATING or is_outdated, RunReason.TEMPLATE),
        (is_asked, RunReason.REQUESTED),
        (end is None or end.reason in LOST, RunReason.POD_LOST),
        (end is not None and end.reason in HANGS, RunReason.UNRESPONSIVE),
    )
    return next((reason for applies, reason in reasons if applies), RunReason.FAILED)
