"""The story of an agent as Events: derived from what the status says now and said before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from supervisor_operator.api.v1alpha1.meta import Condition, ConditionStatus, Phase
from supervisor_operator.api.v1alpha1.supervisor_status import (
    ChildOrder,
    OutcomeType,
    SupervisorStatus,
)
from supervisor_operator.core.decision import Case, Decision
from supervisor_operator.core.ending import HANGS
from supervisor_operator.core.states import State
from supervisor_operator.core.telling import spell, tell_end
from supervisor_operator.core.template import pod_name
from supervisor_operator.core.words import ConditionType, EventReason, Reason, RunReason

OWN_WORDS = {Reason.HEARTBEATS_MISSED, Reason.STARTUP_TIMEOUT, Reason.RELAY_DOWN, Reason.PAUSED}
"""Stalled for these is told by another Event already."""


@dataclass(frozen=True, slots=True)
class Note:
    """One Event to be written once the status is."""

    reason: EventReason | Reason
    text: str
    warning: bool = False
    cause: str = ""
    """The cause as one word, where there are several."""


def notes_between(
    case: Case,
    decision: Decision,
    new: SupervisorStatus,
    orders: tuple[ChildOrder, ...],
) -> tuple[Note, ...]:
    old = case.status
    return (
        *_mode(case, new),
        *_runs(case, old, new),
        *_verdicts(case, decision, new),
        *_schedule(case, old, new),
        *_ends(case, decision, new),
        *_activity(case, old, new),
        *_stalls(case, new),
        *_children(case, new, orders),
    )


def _children(case: Case, new: SupervisorStatus, orders: tuple[ChildOrder, ...]) -> Iterator[Note]:
    before = case.status.children.failed if case.status.children else 0
    failed = [child.name for child in case.observed.tree.children if child.failed_run is not None]
    if new.children and new.children.failed > before and failed:
        yield Note(EventReason.CHILD_FAILED, f"FAILED below: {', '.join(failed[:5])}", warning=True)
    for order in orders:
        text = f"{order.child} is ordered to start again after run {order.run} (order {order.id})"
        yield Note(EventReason.CHILD_ORDERED, text)


def _is(status: SupervisorStatus, kind: ConditionType) -> bool:
    found = _get(status, kind)
    return found is not None and found.status is ConditionStatus.TRUE


def _get(status: SupervisorStatus, kind: ConditionType) -> Condition | None:
    return next((one for one in status.conditions or () if one.type == kind), None)


def _mode(case: Case, new: SupervisorStatus) -> Iterator[Note]:
    was, now = (_is(status, ConditionType.PAUSED) for status in (case.status, new))
    if now and not was:
        yield Note(EventReason.PAUSED, "Paused: the agent is neither judged nor restarted")
    if was and not now:
        yield Note(EventReason.RESUMED, "Resumed: the agent has one full silence allowance")
    ready = _get(new, ConditionType.READY)
    if ready and ready.reason == Reason.STOPPED and case.ready_reason != Reason.STOPPED:
        yield Note(EventReason.STOPPED, "Stopped: its pod is gone and none is wanted")


def _runs(case: Case, old: SupervisorStatus, new: SupervisorStatus) -> Iterator[Note]:
    pod = case.newest
    if pod is None or pod.run <= (old.run or 0):
        return
    match pod.run_reason:
        case RunReason.FIRST:
            if new.phase is not Phase.ACTIVE:  # else one Event tells both
                yield Note(EventReason.SPAWNED, f"Pod {pod.name} created")
        case RunReason.STARTED:
            yield Note(EventReason.STARTED, f"Pod {pod.name} created, with a full restart budget")
        case _:
            before = pod_name(case.observed.name, pod.run - 1)
            words = "; last words kept in status.lastTermination" if new.last_termination else ""
            text = f"Pod {before} replaced by {pod.name} ({pod.run_reason}){words}"
            yield Note(EventReason.RESTARTED, text, cause=pod.run_reason)


def _verdicts(case: Case, decision: Decision, new: SupervisorStatus) -> Iterator[Note]:
    old_verdict = _get(case.status, ConditionType.UNRESPONSIVE)
    was = _is(case.status, ConditionType.UNRESPONSIVE)
    verdict = _get(new, ConditionType.UNRESPONSIVE)
    now = _is(new, ConditionType.UNRESPONSIVE)
    if verdict and now and not (was and old_verdict and old_verdict.reason == verdict.reason):
        cause = verdict.reason
        yield Note(EventReason.UNRESPONSIVE, verdict.message, warning=True, cause=cause)
    if old_verdict and was and new.phase is Phase.ACTIVE and not now:
        yield _recovered(case)
    held_before = _get(case.status, ConditionType.RECONCILING)
    was_held = held_before is not None and held_before.reason == Reason.REMEDIATION_HELD
    if decision.state is State.HELD and not was_held:
        kind = EventReason.FLEET_GUARD if case.observed.storm else EventReason.REMEDIATION_HELD
        yield Note(kind, decision.message, warning=True)


def _schedule(case: Case, old: SupervisorStatus, new: SupervisorStatus) -> Iterator[Note]:
    due = new.next_restart_time
    if due is None or old.next_restart_time == due:
        return
    wait = spell(max(0.0, (due - case.now.wall).total_seconds()))
    most = case.spec.restart.max_restarts
    if _is(new, ConditionType.UNRESPONSIVE):
        why = "the agent is unresponsive"
    else:
        why = (
            f"it ended with {tell_end(new.last_termination)}"
            if new.last_termination
            else "it ended"
        )
    text = f"Restart {case.ledger.counted + 1} of {most} in {wait} because {why}"
    yield Note(EventReason.RESTART_SCHEDULED, text)


def _ends(case: Case, decision: Decision, new: SupervisorStatus) -> Iterator[Note]:
    outcome = new.outcome
    if outcome is None or outcome == case.status.outcome:
        return
    if outcome.type is OutcomeType.FINISHED:
        yield Note(EventReason.FINISHED, f"Pod {new.pod_name} finished its work")
    elif outcome.reason == Reason.BUDGET_EXHAUSTED:
        yield Note(EventReason.BUDGET_EXHAUSTED, decision.message, warning=True)
    elif outcome.reason == Reason.INVALID_TEMPLATE:
        yield Note(EventReason.TEMPLATE_REFUSED, decision.message, warning=True)
    else:
        yield Note(EventReason.FAILED, decision.message, warning=True)


def _activity(case: Case, old: SupervisorStatus, new: SupervisorStatus) -> Iterator[Note]:
    pod = case.newest
    is_first = old.phase is not Phase.ACTIVE or old.pod_uid != new.pod_uid
    if new.phase is not Phase.ACTIVE or pod is None or not is_first:
        return
    if old.phase is Phase.PAUSED and old.pod_uid == new.pod_uid:
        return
    if not case.beats:
        yield Note(EventReason.ACTIVE, f"Pod {pod.name} is ready")
        return
    beat, running = case.observed.beat, case.observed.sightings.running
    after = ""
    if beat and beat.silence is not None and running is not None and running > beat.silence:
        after = f" {spell(running - beat.silence)} after start"
    yield Note(EventReason.ACTIVE, f"Pod {pod.name} sent its first heartbeat{after}")
    end = new.last_termination
    if end and end.reason in HANGS and end.pod_name == pod_name(case.observed.name, pod.run - 1):
        yield _recovered(case)


def _recovered(case: Case) -> Note:
    silent = spell(case.seconds_since(case.status.last_heartbeat_time))
    return Note(EventReason.RECOVERED, f"Heartbeats are back after {silent}")


def _stalls(case: Case, new: SupervisorStatus) -> Iterator[Note]:
    old, now = (_get(status, ConditionType.STALLED) for status in (case.status, new))
    if now is None or (old and old.reason == now.reason) or now.reason in OWN_WORDS:
        return
    if new.outcome and new.outcome.reason == now.reason:
        return
    is_template = now.reason == Reason.INVALID_TEMPLATE
    kind = EventReason.TEMPLATE_REFUSED if is_template else Reason(now.reason)
    yield Note(kind, now.message, warning=True)
