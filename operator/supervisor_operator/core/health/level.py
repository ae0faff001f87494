"""How much an object asks for, by the conditions that the operator wrote, whenever that was."""

from __future__ import annotations

from collections.abc import Iterable

from supervisor_operator.api.v1alpha1.meta import Condition, ConditionStatus, Health
from supervisor_operator.api.v1alpha1.team_status import TeamStatus
from supervisor_operator.core.health.report import Level
from supervisor_operator.core.health.subject import Subject
from supervisor_operator.core.words import ConditionType


def level_of(subject: Subject) -> Level:
    status = subject.status
    if status.observed_generation < subject.generation:
        return Level.UNKNOWN
    return _level(status.conditions or (), works=status.health is Health.HEALTHY)


def team_level(status: TeamStatus, generation: int) -> Level:
    if status.observed_generation < generation:
        return Level.UNKNOWN
    return _level(status.conditions or (), works=False)


def _level(conditions: Iterable[Condition], *, works: bool) -> Level:
    """Stalled means that nothing more happens by itself, even if the agent still works."""
    said = {one.type: one.status for one in conditions}
    ready = said.get(ConditionType.READY)
    if ready is None:
        return Level.UNKNOWN
    if ready is ConditionStatus.TRUE:
        return Level.HEALTHY
    if said.get(ConditionType.STALLED) is ConditionStatus.TRUE:
        return Level.DEGRADED if works else Level.UNHEALTHY
    return Level.UNKNOWN if ready is ConditionStatus.UNKNOWN else Level.DEGRADED
