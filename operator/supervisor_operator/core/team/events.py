"""The story of a team as Events: who joined and left, what was ordered."""

from __future__ import annotations

from collections.abc import Iterator

from supervisor_operator.api.v1alpha1.meta import Condition, ConditionStatus
from supervisor_operator.api.v1alpha1.team_status import MemberStatus, TeamOrder, TeamStatus
from supervisor_operator.core.events import Note
from supervisor_operator.core.words import EventReason, Reason, TeamCondition

Stay = tuple[str, str, str | None]
TROUBLES = {
    TeamCondition.STALLED: ConditionStatus.TRUE,
    TeamCondition.SUPERVISOR_RESOLVED: ConditionStatus.FALSE,
    TeamCondition.MEMBERS_RESOLVED: ConditionStatus.FALSE,
    TeamCondition.REMEDIATION_ALLOWED: ConditionStatus.FALSE,
}
"""Conditions that are an Event where they come to have this status."""


def team_notes(old: TeamStatus, new: TeamStatus, order: TeamOrder | None) -> tuple[Note, ...]:
    return (*_stays(old, new), *_orders(order), *_warnings(old, new))


def _present(status: TeamStatus) -> dict[Stay, MemberStatus]:
    return {
        (stay.name, stay.supervisor, stay.agent_id): stay
        for stay in status.members or ()
        if stay.left_at is None
    }


def _stays(old: TeamStatus, new: TeamStatus) -> Iterator[Note]:
    before, after = _present(old), _present(new)
    for stay in (stay for key, stay in after.items() if key not in before):
        text = f"{stay.supervisor} joined as {stay.name} ({stay.role})"
        yield Note(EventReason.MEMBER_JOINED, text)
    for stay in (stay for key, stay in before.items() if key not in after):
        yield Note(EventReason.MEMBER_LEFT, f"{stay.supervisor} left ({stay.name})")


def _orders(order: TeamOrder | None) -> Iterator[Note]:
    if order is None:
        return
    cause = order.trigger.supervisor if order.trigger else "restartRequest"
    text = f"Order {order.id}: {len(order.members)} members restart together because of {cause}"
    yield Note(EventReason.GROUP_RESTART, text, warning=order.trigger is not None)


def _get(status: TeamStatus, kind: TeamCondition) -> Condition | None:
    return next((one for one in status.conditions or () if one.type == kind), None)


def _warnings(old: TeamStatus, new: TeamStatus) -> Iterator[Note]:
    """Each trouble once, when its reason comes up."""
    for kind, bad in TROUBLES.items():
        before, after = _get(old, kind), _get(new, kind)
        if after is None or after.status is not bad:
            continue
        if before is None or before.reason != after.reason:
            yield Note(Reason(after.reason), after.message, warning=True)
