"""What a refusal of the API server, met in this very pass, makes of the case."""

from __future__ import annotations

from dataclasses import replace

from supervisor_operator.core.decision import Case, Decision, kept
from supervisor_operator.core.observed import RefusalKind
from supervisor_operator.core.states import State
from supervisor_operator.core.words import Reason

ANSWERS = {
    RefusalKind.CREATE: (
        State.CREATE_REFUSED,
        "tried again with growing delay; no edit is needed once the cause is gone",
    ),
    RefusalKind.CONFLICT: (
        State.NAME_CONFLICT,
        "it is left alone: remove or rename it, or give this Supervisor another name",
    ),
    RefusalKind.RIGHTS: (
        State.NAME_CONFLICT,
        "it is left alone: remove it, so that the operator can make its own",
    ),
    RefusalKind.KILL: (State.KILL_REFUSED, "tried again each minute"),
}


def judge_refusal(case: Case) -> Decision | None:
    refusal = case.observed.refusal
    if refusal is None:
        return None
    if refusal.kind is RefusalKind.TEMPLATE:
        return refuse_template(case, f"The API server refuses the pod: {refusal.message}")
    state, advice = ANSWERS[refusal.kind]
    return kept(case, state, f"{refusal.message}; {advice}")


def refuse_template(case: Case, message: str) -> Decision:
    """With a pod alive it runs on; without one there is nothing left to run."""
    if case.alive:
        return kept(case, State.TEMPLATE_REFUSED, f"{message}; the old pod keeps running")
    decision = kept(case, State.FAILED, f"{message}; edit spec.agent")
    reason = Reason.INVALID_TEMPLATE
    return replace(decision, reason=reason, outcome=case.failed(reason), next_restart=None)
