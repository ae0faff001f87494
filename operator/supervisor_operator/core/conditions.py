"""Conditions in the usual shape: the transition time moves only when the status flips."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from supervisor_operator.api.v1alpha1.meta import Condition, ConditionStatus
from supervisor_operator.core.words import ConditionType, TeamCondition

MESSAGE_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class Said:
    """What a condition shall say now."""

    type: ConditionType | TeamCondition
    status: ConditionStatus
    reason: str
    message: str = ""


def update_conditions(
    stored: Iterable[Condition], said: Iterable[Said], generation: int, now: datetime
) -> list[Condition]:
    """The new list: what is not said any more is gone."""
    before = {condition.type: condition for condition in stored}
    return [_update(before.get(one.type), one, generation, now) for one in said]


def _update(old: Condition | None, said: Said, generation: int, now: datetime) -> Condition:
    message = said.message[:MESSAGE_LIMIT]
    flipped = old is None or old.status is not said.status
    if old and (old.status, old.reason, old.message, old.observed_generation) == (
        said.status,
        said.reason,
        message,
        generation,
    ):
        return old
    return Condition(
        type=said.type,
        status=said.status,
        reason=said.reason,
        message=message,
        last_transition_time=now if flipped or old is None else old.last_transition_time,
        observed_generation=generation,
    )
