"""PLAN: the second stage of a pass. From what was observed to what to do and what to say.

A chain of small checks, the first that applies decides. Whatever must be on record before it is
done (a verdict before the kill, an exit before the next run) is decided in two passes: the first
writes it down, the second finds it written and acts. A crash between them loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from supervisor_operator.api.v1alpha1.meta import OperatingMode
from supervisor_operator.api.v1alpha1.supervisor_status import OutcomeType, SupervisorStatus
from supervisor_operator.core.actions import Action, DeletePod
from supervisor_operator.core.alive import judge_alive, kill_hung
from supervisor_operator.core.children import ChildPlan, plan_children
from supervisor_operator.core.decision import Case, Decision, kept, stuck_or
from supervisor_operator.core.events import Note, notes_between
from supervisor_operator.core.housekeeping import tidy_up
from supervisor_operator.core.next_run import is_covered, judge_next_run
from supervisor_operator.core.observed import Now, Observed
from supervisor_operator.core.refusals import judge_refusal
from supervisor_operator.core.states import State
from supervisor_operator.core.status import compute_status
from supervisor_operator.core.telling import tell_children, tell_mode
from supervisor_operator.core.tree import RollUp, roll_up
from supervisor_operator.core.words import ConditionType


@dataclass(frozen=True, slots=True)
class Plan:
    actions: tuple[Action, ...]
    status: SupervisorStatus
    notes: tuple[Note, ...]
    state: State
    check_in: float | None = None
    confirm: bool = False
    overdue: float | None = None
    can_wait: bool = False
    """The status only says that the first pod is on its way."""


def plan_supervisor(observed: Observed, now: Now) -> Plan:
    """The whole decision about one Supervisor; pure."""
    case = Case.of(observed, now)
    children = plan_children(case)
    decision = _escalate(case, decide(case), children)
    status = compute_status(case, decision, children)
    return Plan(
        actions=(*decision.actions, *tidy_up(case, decision)),
        status=status,
        notes=notes_between(case, decision, status, children.fresh),
        state=decision.state,
        check_in=decision.check_in,
        confirm=decision.confirm,
        overdue=decision.overdue,
        can_wait=_is_on_its_way(case, decision),
    )


def _is_on_its_way(case: Case, decision: Decision) -> bool:
    return decision.state is State.STARTING and not case.status.run


def decide(case: Case) -> Decision:
    for check in CHECKS:
        found = check(case)
        if found:
            return found
    return judge_next_run(case)


def _escalate(case: Case, decision: Decision, children: ChildPlan) -> Decision:
    """A child's failure makes this one FAILED; its own agent and its other children run on."""
    outcome = children.escalation
    if outcome is None or decision.outcome is not None:
        return decision
    message = (
        f"Child {outcome.child} failed and may not be started again from here "
        f"(childFailurePolicy {case.spec.child_failure_policy}): fix the cause, then set "
        "spec.restartRequest to a new value"
    )
    return replace(
        decision, state=State.FAILED, reason=outcome.reason, message=message, outcome=outcome
    )


def _invalid(case: Case) -> Decision | None:
    if not case.observed.invalid:
        return None
    message = f"The stored object cannot be read, its pod is left alone: {case.observed.invalid}"
    return kept(case, State.INVALID_SPEC, message)


def _stopped(case: Case) -> Decision | None:
    if case.observed.mode is not OperatingMode.STOPPED:
        return None
    return _without_pod(case, State.STOPPED, f"No pod is wanted: {tell_mode(case)}")


def _no_agent(case: Case) -> Decision | None:
    if case.spec.agent is not None:
        return None
    decision = _without_pod(case, State.NO_AGENT, "No agent of its own and no children")
    children = case.observed.tree.children
    if decision.state is not State.NO_AGENT or not children:
        return decision
    return replace(decision, state=ROLLED_UP[roll_up(children)], message=tell_children(children))


def _without_pod(case: Case, state: State, message: str) -> Decision:
    """End the pod, then forget what counted: whoever starts again starts afresh."""
    if not case.alive:
        fresh = case.ledger.forgive()
        return Decision(state, message, fresh, ended=case.newest_end(), settled=True)
    names = ", ".join(pod.name for pod in case.alive)
    stopping = Decision(
        State.STOPPING,
        f"Waiting for pod {names} to end",
        case.ledger,
        ended=case.newest_end(),
        actions=tuple(
            DeletePod(pod, "no pod is wanted") for pod in case.alive if not pod.terminating
        ),
    )
    return stuck_or(case.alive[-1], stopping, case.observed.sightings.terminating)


def _paused(case: Case) -> Decision | None:
    if case.observed.mode is not OperatingMode.PAUSED:
        return None
    if case.outcome and case.outcome.type is OutcomeType.FINISHED:
        return None
    uid = case.status.pod_uid
    if uid is None or any(pod.uid == uid for pod in case.alive):
        return kept(case, State.PAUSED, f"Nothing is judged or restarted: {tell_mode(case)}")
    message = (
        f"The agent is down ({case.status.pod_name}) and stays so: {tell_mode(case)}; "
        "with Running it is started again"
    )
    return kept(case, State.PAUSED_DOWN, message)


def _ended_for_good(case: Case) -> Decision | None:
    outcome = case.outcome
    if outcome is None:
        return None
    if case.is_released or _is_asked_back(case):
        decision = kept(case, State.STARTING, "Starting again")
        fresh = case.ledger.forgive()
        return replace(
            decision,
            ledger=fresh,
            outcome=None,
            next_restart=None,
            settled=not case.alive,
            check_in=0,
        )
    if outcome.type is OutcomeType.FINISHED:
        return kept(case, State.FINISHED, f"Finished in run {outcome.run}")
    return _given_up(case, outcome.reason)


def _is_asked_back(case: Case) -> bool:
    """By restartRequest of its team, when its turn comes."""
    link = case.observed.team
    return link is not None and link.is_request and link.may_start and is_covered(case)


def _given_up(case: Case, reason: str) -> Decision:
    ready = case.condition(ConditionType.READY)
    pod, hung = case.newest, case.stored_verdict
    decision = replace(
        kept(case, State.FAILED, ready.message if ready else reason),
        reason=reason,
        verdict=hung.reason if hung else "",
        missed=case.status.missed_heartbeats,
    )
    if pod is None or pod.finished or pod.terminating or pod.ended_by or hung is None:
        return decision
    return replace(decision, actions=(kill_hung(pod, hung.reason),))


ROLLED_UP = {
    RollUp.EMPTY: State.NO_AGENT,
    RollUp.STARTING: State.CHILDREN_STARTING,
    RollUp.ACTIVE: State.CHILDREN_ACTIVE,
    RollUp.DEGRADED: State.CHILDREN_DEGRADED,
    RollUp.FAILED: State.CHILDREN_FAILED,
    RollUp.FINISHED: State.CHILDREN_FINISHED,
    RollUp.PAUSED: State.CHILDREN_PAUSED,
    RollUp.STOPPED: State.CHILDREN_STOPPED,
}

CHECKS: tuple[Callable[[Case], Decision | None], ...] = (
    _invalid,
    judge_refusal,
    _stopped,
    _paused,
    _ended_for_good,
    _no_agent,
    judge_alive,
)
