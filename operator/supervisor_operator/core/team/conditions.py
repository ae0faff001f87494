"""What the conditions of a team say, each with the name of whoever it is about."""

from __future__ import annotations

from collections.abc import Iterator

from supervisor_operator.api.v1alpha1.meta import ConditionStatus, Health, OperatingMode, Phase
from supervisor_operator.core.conditions import Said
from supervisor_operator.core.team.members import Wanted, leads_itself
from supervisor_operator.core.team.observed import Obstacle, TeamObserved
from supervisor_operator.core.team.orders import Line, is_allowed, is_unhealthy
from supervisor_operator.core.telling import tell_children, tell_names
from supervisor_operator.core.tree import ChildView, RollUp, roll_up
from supervisor_operator.core.words import Reason, TeamCondition

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
PHASES = {
    RollUp.EMPTY: (Phase.ACTIVE, TRUE, Reason.NO_CHILDREN),
    RollUp.STARTING: (Phase.SPAWNING, UNKNOWN, Reason.STARTING),
    RollUp.ACTIVE: (Phase.ACTIVE, TRUE, Reason.MEMBERS_HEALTHY),
    RollUp.DEGRADED: (Phase.ACTIVE, FALSE, Reason.DEGRADED),
    RollUp.FAILED: (Phase.FAILED, FALSE, Reason.MEMBERS_FAILED),
    RollUp.FINISHED: (Phase.TERMINATED, TRUE, Reason.SUCCEEDED),
    RollUp.PAUSED: (Phase.PAUSED, TRUE, Reason.PAUSED),
    RollUp.STOPPED: (Phase.TERMINATED, TRUE, Reason.STOPPED),
}
MODES = {
    OperatingMode.PAUSED: (Phase.PAUSED, TRUE, Reason.PAUSED),
    OperatingMode.STOPPED: (Phase.TERMINATED, TRUE, Reason.STOPPED),
}


def _children(line: Line) -> tuple[ChildView, ...]:
    """Who is still to come counts as starting."""
    there = [
        ChildView(agent.name, agent.phase, agent.health, finished=agent.finished)
        for agent in line.agents
    ]
    coming = [ChildView(name, Phase.SPAWNING, Health.UNKNOWN) for name in line.missing]
    return (*there, *coming)


def _exhausted(line: Line) -> str:
    """The member that failed because the team's budget is used up."""
    failed = (agent for agent in line.agents if agent.failed_reason == Reason.TEAM_EXHAUSTED)
    return next((agent.name for agent in failed), "")


def shown(line: Line) -> tuple[Phase, ConditionStatus, Reason]:
    if line.mode in MODES:
        return MODES[line.mode]
    if _exhausted(line):
        return Phase.FAILED, FALSE, Reason.TEAM_EXHAUSTED
    return PHASES[roll_up(_children(line))]


def said_of(
    observed: TeamObserved,
    line: Line,
    wanted: tuple[Wanted, ...],
    obstacles: tuple[Obstacle, ...],
) -> Iterator[Said]:
    phase, ready, reason = shown(line)
    message = tell_children(_children(line)).replace("children", "members")
    if observed.invalid:
        ready, reason = FALSE, Reason.INVALID_SPEC
        message = (
            f"The stored object cannot be read, its members are left alone: {observed.invalid}"
        )
    elif obstacles:
        ready = FALSE if ready is TRUE else ready
        reason = Reason.DEGRADED if ready is FALSE and reason is Reason.MEMBERS_HEALTHY else reason
    yield Said(TeamCondition.READY, ready, reason, message)
    degraded = phase is Phase.ACTIVE and ready is FALSE
    yield Said(
        TeamCondition.DEGRADED, TRUE if degraded else FALSE, reason, message if degraded else ""
    )
    yield _said_allowed(line)
    if observed.spec.supervisor_ref:
        yield _said_supervisor(observed, wanted)
    yield _said_members(line, obstacles)
    if phase is Phase.FAILED or observed.invalid:
        yield Said(TeamCondition.STALLED, TRUE, reason, _way_out(line, message))
    elif line.next_in_turn:
        text = f"order {line.order_id} is being obeyed, next by {line.next_in_turn.name}"
        yield Said(TeamCondition.RECONCILING, TRUE, Reason.GROUP_RESTART, text)
    elif phase is Phase.SPAWNING:
        yield Said(TeamCondition.RECONCILING, TRUE, reason, message)


def _way_out(line: Line, message: str) -> str:
    culprit = _exhausted(line)
    if not culprit:
        return message
    return (
        f"{line.spec.max_team_restarts} group restarts within {line.spec.restart_window_seconds} s "
        f"are used up, and {culprit} failed again: fix the cause, then set spec.restartRequest"
    )


def _said_allowed(line: Line) -> Said:
    kind = TeamCondition.REMEDIATION_ALLOWED
    if is_allowed(line):
        return Said(kind, TRUE, Reason.WITHIN_LIMIT)
    limit = line.spec.max_unhealthy
    unwell = tell_names(agent.name for agent in line.agents if is_unhealthy(agent, line))
    text = f"more members are unhealthy than maxUnhealthy {limit}: nobody is restarted; {unwell}"
    return Said(kind, FALSE, Reason.TOO_MANY_UNHEALTHY, text)


def _said_supervisor(observed: TeamObserved, wanted: tuple[Wanted, ...]) -> Said:
    kind, ref = TeamCondition.SUPERVISOR_RESOLVED, observed.spec.supervisor_ref
    name = ref.name if ref else ""
    if leads_itself(observed.spec, wanted):
        text = f"Supervisor {name} is a member of this team and cannot lead it: name another one"
        return Said(kind, FALSE, Reason.SUPERVISOR_IS_MEMBER, text)
    if observed.supervisor_there:
        return Said(kind, TRUE, Reason.RESOLVED)
    old = next((one for one in observed.status.conditions or () if one.type == kind), None)
    was_there = old is not None and (old.status is TRUE or old.reason == Reason.SUPERVISOR_GONE)
    reason = Reason.SUPERVISOR_GONE if was_there else Reason.SUPERVISOR_NOT_FOUND
    stops = observed.spec.when_supervisor_gone.value
    text = f"There is no Supervisor {name}: create it or change supervisorRef"
    text += f" (whenSupervisorGone: {stops})"
    return Said(kind, FALSE, reason, text)


def _said_members(line: Line, obstacles: tuple[Obstacle, ...]) -> Said:
    kind = TeamCondition.MEMBERS_RESOLVED
    if obstacles:
        text = "; ".join(one.message for one in obstacles[:3])
        return Said(kind, FALSE, obstacles[0].reason, text)
    if line.missing:
        return Said(kind, UNKNOWN, Reason.STARTING, "members are being made")
    return Said(kind, TRUE, Reason.RESOLVED)
