"""Judges a pod that is not finished: on its way out, outdated, pending, well or silent."""

from __future__ import annotations

from dataclasses import replace

from supervisor_operator.api.v1alpha1.meta import ConditionStatus
from supervisor_operator.api.v1alpha1.policies import UpdateStrategyType
from supervisor_operator.api.v1alpha1.supervisor_status import LastTermination
from supervisor_operator.core.actions import CreateHeartbeat, DeletePod, KillPod, TryPod
from supervisor_operator.core.children import is_ordered
from supervisor_operator.core.decision import Case, Decision, kept, stuck_or
from supervisor_operator.core.ending import HANGS, Fate, judge
from supervisor_operator.core.heartbeat import BeatVerdict, Remedy, evaluate_beats
from supervisor_operator.core.observed import PodView
from supervisor_operator.core.refusals import refuse_template
from supervisor_operator.core.states import State
from supervisor_operator.core.telling import spell, tell_budget, tell_silence
from supervisor_operator.core.template import TemplateProblemError, build_pod
from supervisor_operator.core.words import ConditionType, EndedBy, Reason, RunReason


def judge_alive(case: Case) -> Decision | None:
    if not case.alive:
        return None
    pod = max(case.alive, key=lambda one: one.run)
    checks = (_terminating, _being_ended, _ordered, _outdated, _asked_for, _ordered_above)
    for check in (*checks, _agent_gone):
        found = check(case, pod)
        if found:
            return found
    return _refusal_stands(case, _running(case, pod))


def _terminating(case: Case, pod: PodView) -> Decision | None:
    if not pod.terminating:
        return None
    message = f"Pod {pod.name} is terminating; the next run starts when it is gone"
    state = State.UPDATING if case.ready_reason == Reason.UPDATING else State.RESTARTING
    waiting = kept(case, state, message)
    if case.ready_reason in {Reason.RESTART_REQUESTED, Reason.GROUP_RESTART}:
        waiting = replace(waiting, reason=case.ready_reason)
    return stuck_or(pod, waiting, case.observed.sightings.terminating)


def _being_ended(case: Case, pod: PodView) -> Decision | None:
    if not pod.ended_by:
        return None
    if pod.ended_by in HANGS:
        verdict = case.condition(ConditionType.UNRESPONSIVE)
        message = verdict.message if verdict else f"Pod {pod.name} is being ended"
        ending = kept(case, State.UNRESPONSIVE, message)
        missed = case.status.missed_heartbeats
        ending = replace(ending, reason=pod.ended_by, verdict=pod.ended_by, missed=missed)
    else:
        message = f"The agent in pod {pod.name} ended; the rest of the pod is being ended"
        ending = kept(case, State.RESTARTING, message)
    return stuck_or(pod, ending, case.observed.sightings.ended_by)


def _ordered(case: Case, pod: PodView) -> Decision | None:
    """The team restarts as a group, and it is our turn to stop."""
    link = case.observed.team
    if link is None or not link.may_stop or pod.order >= link.order:
        return None
    message = f"Pod {pod.name} is restarted with team {link.team} (order {link.order})"
    decision = kept(case, State.RESTARTING, message)
    return replace(decision, reason=Reason.GROUP_RESTART, actions=(DeletePod(pod, message),))


def _outdated(case: Case, pod: PodView) -> Decision | None:
    if case.spec.update_strategy.type is not UpdateStrategyType.RECREATE:
        return None
    if pod.template_hash == case.wanted_hash or _is_refused(case):
        return None
    message = f"Pod {pod.name} is replaced because spec changed"
    try:
        manifest = build_pod(case.observed, case.ledger.next_run(counts=False), RunReason.TEMPLATE)
    except TemplateProblemError as problem:
        return refuse_template(case, str(problem))
    steps = (TryPod(manifest, message), DeletePod(pod, message))
    return _replaced(case, State.UPDATING, message, steps)


def _is_refused(case: Case) -> bool:
    """The server (or we) refused this very generation before: only an edit changes that."""
    stalled = case.condition(ConditionType.STALLED)
    return (
        stalled is not None
        and stalled.reason == Reason.INVALID_TEMPLATE
        and stalled.observed_generation == case.observed.generation
    )


def _asked_for(case: Case, pod: PodView) -> Decision | None:
    request = case.spec.restart_request
    if not request or request == pod.request:
        return None
    message = f"Pod {pod.name} is restarted as asked for by restartRequest {request!r}"
    decision = _replaced(case, State.RESTARTING, message, (DeletePod(pod, message),))
    return replace(decision, reason=Reason.RESTART_REQUESTED)


def _ordered_above(case: Case, pod: PodView) -> Decision | None:
    """It FAILED for a child's sake, and the supervisor above ordered it to start again."""
    tree = case.observed.tree
    if not is_ordered(case) or pod.parent_order >= tree.order:
        return None
    message = f"Pod {pod.name} is restarted by the supervisor above (order {tree.order})"
    decision = _replaced(case, State.RESTARTING, message, (DeletePod(pod, message),))
    return replace(decision, reason=Reason.RESTART_REQUESTED)


def _replaced(
    case: Case, state: State, message: str, steps: tuple[TryPod | DeletePod, ...]
) -> Decision:
    """First write down that the budget is given back, then replace the pod."""
    decision = replace(kept(case, state, message), next_restart=None)
    if case.ledger.is_forgiven and case.status.forgiven_run == case.ledger.forgiven:
        return replace(decision, actions=steps)
    return replace(decision, ledger=case.ledger.forgive(), check_in=0)


def _agent_gone(case: Case, pod: PodView) -> Decision | None:
    if pod.end is None:
        return None
    message = f"The agent in pod {pod.name} ended with exit code {pod.end.exit_code}"
    decision = kept(case, State.RESTARTING, message)
    if not pod.others_running:
        return decision
    why = f"{message}; its other containers are ended too"
    return replace(decision, actions=(KillPod(pod, EndedBy.AGENT_EXITED, why),))


def _running(case: Case, pod: PodView) -> Decision:
    if not pod.running:
        return _pending(case, pod)
    if not case.beats:
        if pod.ready:
            return _well(case, Reason.POD_READY, f"Pod {pod.name} is ready", None)
        return kept(case, State.STARTING, f"Waiting for pod {pod.name} to become ready")
    beat = case.observed.beat
    if beat is None or beat.missing:
        decision = replace(_by_beats(case, pod), confirm=False)
        return replace(decision, actions=(CreateHeartbeat(pod, "the pod has no Heartbeat"),))
    return _by_beats(case, pod)


def _pending(case: Case, pod: PodView) -> Decision:
    limit = case.spec.progress_deadline_seconds
    is_known = case.status.run == pod.run
    waited = case.seconds_since(case.status.last_restart_time) if is_known else 0.0
    what = f"Pod {pod.name} waits: {pod.waiting_message or pod.waiting}"
    decision = kept(case, State.PENDING, what)
    if not pod.waiting:
        decision = kept(case, State.STARTING, f"Pod {pod.name} is starting")
    decision = replace(decision, reason=pod.waiting, check_in=max(limit - waited, 1.0))
    if waited < limit:
        return decision
    late = f"{decision.message}; pending for more than {limit} s, and left alone"
    return replace(
        decision,
        state=State.PENDING_TOO_LONG,
        reason=pod.waiting or Reason.PENDING,
        message=late,
        check_in=None,
    )


def _by_beats(case: Case, pod: PodView) -> Decision:
    verdict = evaluate_beats(case.observed, pod, stored=case.stored_verdict is not None)
    if verdict.unresponsive:
        return _silent(case, pod, verdict)
    if not verdict.beaten:
        message = f"Waiting for the first heartbeat of pod {pod.name}"
        if case.observed.beat and case.observed.beat.problem:
            message += f": {case.observed.beat.problem}"
        return replace(kept(case, State.STARTING, message), check_in=verdict.check_in)
    message = f"Pod {pod.name} beats every {case.spec.heartbeat.interval_seconds} s"
    return _well(case, Reason.HEARTBEAT_FRESH, message, verdict.check_in)


def _well(case: Case, reason: Reason, message: str, check_in: float | None) -> Decision:
    """Running; after long enough the budget is full again."""
    decision = kept(case, State.RUNNING, message)
    decision = replace(
        decision, reason=reason, next_restart=None, missed=0, check_in=check_in, outcome=None
    )
    if case.ledger.counted == 0:
        return decision
    ready = case.condition(ConditionType.READY)
    is_ready = ready is not None and ready.status is ConditionStatus.TRUE
    healthy = case.seconds_since(ready.last_transition_time) if ready and is_ready else 0.0
    left = case.spec.restart.reset_after_seconds - healthy
    if left <= 0:
        return replace(decision, ledger=case.ledger.forgive())
    return replace(decision, check_in=min(left, check_in or left))


def _silent(case: Case, pod: PodView, verdict: BeatVerdict) -> Decision:
    """Write the verdict down; only one that is written leads to a remedy."""
    state = REMEDIES[verdict.remedy]
    decision = replace(
        kept(case, state, tell_silence(case, pod, verdict)),
        reason=verdict.reason,
        verdict=verdict.reason,
        missed=verdict.missed,
        overdue=verdict.overdue,
        check_in=verdict.check_in,
        confirm=not (case.observed.beat and case.observed.beat.confirmed),
    )
    stored = case.stored_verdict
    is_known = stored is not None and stored.reason == verdict.reason
    if verdict.remedy is Remedy.RESTART and not (is_known and case.next_restart):
        return _sentence(case, decision)
    if stored and is_known:
        missed = case.status.missed_heartbeats
        decision = replace(decision, message=stored.message, missed=missed)
    if verdict.remedy is Remedy.RESTART:
        return replace(decision, actions=(kill_hung(pod, verdict.reason),))
    return replace(decision, next_restart=None)


REMEDIES = {
    Remedy.NONE: State.MARKED,
    Remedy.MARK: State.MARKED,
    Remedy.HOLD: State.HELD,
    Remedy.RESTART: State.UNRESPONSIVE,
}


def _sentence(case: Case, decision: Decision) -> Decision:
    """What the verdict leads to: a restart with its time, or giving up."""
    end = LastTermination(reason=decision.reason)
    judgement = judge(end, case.spec.restart, case.ledger, case.observed.uid)
    if judgement.fate is Fate.FAILED:
        message = f"{decision.message}; {tell_budget(case, judgement.reason)}"
        outcome = case.failed(judgement.reason)
        return replace(
            decision,
            state=State.FAILED,
            reason=judgement.reason,
            message=message,
            outcome=outcome,
            check_in=0,
        )
    message = f"{decision.message}; restart in {spell(judgement.delay)}"
    due = case.now.after(judgement.delay)
    return replace(decision, message=message, next_restart=due, check_in=0)


def kill_hung(pod: PodView, reason: str) -> KillPod:
    return KillPod(pod, reason, f"pod {pod.name} hangs ({reason})")


def _refusal_stands(case: Case, decision: Decision) -> Decision:
    """An agent that is well although its new template was refused says so."""
    if decision.state is not State.RUNNING or not _is_refused(case):
        return decision
    ready = case.condition(ConditionType.READY)
    message = ready.message if ready else decision.message
    return replace(decision, state=State.TEMPLATE_REFUSED, reason="", message=message)
