"""What a supervisor does about children that have FAILED: order them to start again, or escalate.

An order names the child, its uid and the run that failed, so it is given once and obeyed once. All
of it is in the supervisor's own status; the child reads it there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from supervisor_operator.api.v1alpha1.meta import OperatingMode
from supervisor_operator.api.v1alpha1.policies import ChildFailurePolicy
from supervisor_operator.api.v1alpha1.supervisor_status import ChildOrder, Outcome
from supervisor_operator.core.decision import Case
from supervisor_operator.core.tree import ChildView
from supervisor_operator.core.words import Reason

MOST_ORDERS = 100


@dataclass(frozen=True, slots=True)
class ChildPlan:
    orders: tuple[ChildOrder, ...] = ()
    fresh: tuple[ChildOrder, ...] = ()
    """Those of `orders` that are given in this pass."""
    escalation: Outcome | None = None


def plan_children(case: Case) -> ChildPlan:
    known = _known_orders(case)
    failed = _unanswered(case.observed.tree.children, known)
    if case.observed.mode is not OperatingMode.RUNNING:
        return ChildPlan(known)
    if case.is_released:
        return _give(case, known, failed)
    if _is_answered(case) or is_ordered(case):
        return ChildPlan(known)
    left = _allowance(case, known)
    if left is None:
        return ChildPlan(known)
    given = _give(case, known, failed[:left])
    if len(failed) <= left:
        return given
    return replace(given, escalation=_escalation(case, failed[left], given.orders))


def is_ordered(case: Case) -> bool:
    """The supervisor above ordered this very run to be started again, and it still stands."""
    tree = case.observed.tree
    has_run = case.spec.agent is not None and case.ledger.run > 0
    return has_run and tree.ordered_run == case.ledger.run


def _is_answered(case: Case) -> bool:
    return case.outcome is not None and case.outcome.reason == Reason.CHILD_FAILED


def _allowance(case: Case, orders: Iterable[ChildOrder]) -> int | None:
    """How many failures may be answered from here before one escalates; None: none ever does."""
    match case.spec.child_failure_policy:
        case ChildFailurePolicy.IGNORE:
            return None
        case ChildFailurePolicy.FAIL:
            return 0
        case ChildFailurePolicy.RESTART:
            return _budget_left(case, orders)


def _known_orders(case: Case) -> tuple[ChildOrder, ...]:
    """Orders on record; of a wiped status, what the stamps on the children's pods tell."""
    if case.status.child_orders is not None or case.status.observed_generation > 0:
        return tuple(case.status.child_orders or ())
    return tuple(
        ChildOrder(
            child=child.name,
            uid=child.uid,
            run=max(0, child.run - 1),
            id=child.parent_order,
            time=case.now.second,
        )
        for child in case.observed.tree.children
        if child.parent_order
    )


def _unanswered(
    children: Iterable[ChildView], orders: Iterable[ChildOrder]
) -> tuple[ChildView, ...]:
    answered = {(order.uid, order.run) for order in orders}
    return tuple(
        child
        for child in children
        if child.failed_run is not None and (child.uid, child.failed_run) not in answered
    )


def _budget_left(case: Case, orders: Iterable[ChildOrder]) -> int:
    """Orders count against this supervisor's own maxRestarts, with its own restarts."""
    window = timedelta(seconds=case.spec.restart.reset_after_seconds)
    recent = sum(case.now.wall - order.time < window for order in orders)
    most = min(case.spec.restart.max_restarts, MOST_ORDERS)  # more are not on record
    return max(0, most - case.ledger.counted - recent)


def _give(case: Case, known: tuple[ChildOrder, ...], children: tuple[ChildView, ...]) -> ChildPlan:
    last = _last_id(case, known)
    fresh = tuple(
        ChildOrder(
            child=child.name,
            uid=child.uid,
            run=child.failed_run or 0,
            id=last + number,
            time=case.now.second,
        )
        for number, child in enumerate(children, 1)
    )
    return ChildPlan((*known, *fresh)[-MOST_ORDERS:], fresh)


def _last_id(case: Case, orders: Iterable[ChildOrder]) -> int:
    stamps = [child.parent_order for child in case.observed.tree.children]
    return max([0, *(order.id for order in orders), *stamps])


def _escalation(case: Case, child: ChildView, orders: tuple[ChildOrder, ...]) -> Outcome:
    """Without an agent there is no run to count by: then the last orders tell outcomes apart."""
    after = case.observed.tree.ordered_run
    number = max(_last_id(case, orders), 0 if after is None else after + 1)
    run = case.ledger.run if case.spec.agent else number
    return case.failed(Reason.CHILD_FAILED).model_copy(
        update={
            "run": run,
            "child": child.name,
            "child_uid": child.uid,
            "child_run": child.failed_run,
        }
    )
