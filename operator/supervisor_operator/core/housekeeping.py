"""What is cleared away beside the decision: ended pods over the number, beats of the dead."""

from __future__ import annotations

from supervisor_operator.core.actions import Action, DeleteHeartbeat, DeletePod
from supervisor_operator.core.decision import Case, Decision
from supervisor_operator.core.states import State

SETTLED = {State.RUNNING, State.STOPPED, State.FAILED, State.FINISHED, State.NO_AGENT}


def tidy_up(case: Case, decision: Decision) -> tuple[Action, ...]:
    """Only what status has on record may go, and only once the case is settled."""
    if case.observed.invalid or case.observed.refusal:
        return ()
    return (*_old_pods(case, decision), *_dead_beats(case))


def _old_pods(case: Case, decision: Decision) -> list[DeletePod]:
    if decision.state not in SETTLED:
        return []
    if decision.outcome and decision.outcome != case.status.outcome:
        return []
    keep = case.spec.restart.keep_finished_pods
    if decision.state is State.FAILED:
        keep = max(keep, 1)
    ended = sorted((pod for pod in case.observed.pods if pod.finished), key=lambda pod: -pod.run)
    return [
        DeletePod(pod, f"{keep} ended pods are kept")
        for pod in ended[keep:]
        if not pod.terminating and (pod.run < case.ledger.run or case.recorded)
    ]


def _dead_beats(case: Case) -> list[DeleteHeartbeat]:
    newest = case.newest.name if case.newest else ""
    return [
        DeleteHeartbeat(beat.name, beat.uid, "its pod is finished")
        for beat in case.observed.beat_leftovers
        if beat.name != newest or case.recorded
    ]
