"""The plan of a team: who joins and leaves, what is ordered, what its status says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from supervisor_operator.api.v1alpha1.meta import Condition, ConditionStatus, OperatingMode
from supervisor_operator.api.v1alpha1.policies import WhenSupervisorGone
from supervisor_operator.api.v1alpha1.team_status import TeamOrder, TeamStatus
from supervisor_operator.core.events import Note
from supervisor_operator.core.team.events import team_notes
from supervisor_operator.core.team.members import (
    Wanted,
    build_supervisor,
    doubles,
    has_drifted,
    leads_itself,
    put_back,
    wanted_agents,
)
from supervisor_operator.core.team.observed import AgentView, Obstacle, TeamObserved
from supervisor_operator.core.team.orders import Line, next_order
from supervisor_operator.core.team.status import compute_team_status
from supervisor_operator.core.tree import strictest
from supervisor_operator.core.words import Reason, TeamCondition

GONE_AFTER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class CreateSupervisor:
    manifest: dict[str, Any]
    reason: str


@dataclass(frozen=True, slots=True)
class PutBackSupervisor:
    agent: AgentView
    spec: dict[str, Any]
    reason: str


@dataclass(frozen=True, slots=True)
class DeleteSupervisor:
    agent: AgentView
    reason: str


TeamAction = CreateSupervisor | PutBackSupervisor | DeleteSupervisor


@dataclass(frozen=True, slots=True)
class TeamPlan:
    actions: tuple[TeamAction, ...]
    status: TeamStatus
    notes: tuple[Note, ...]
    check_in: float | None = None


def plan_team(observed: TeamObserved, now: datetime) -> TeamPlan:
    wanted = wanted_agents(observed.name, observed.spec)
    obstacles = (*observed.obstacles, *_obstacles(observed, wanted))
    line = line_of(observed, wanted, now)
    order = None if observed.invalid else next_order(line)
    status = compute_team_status(observed, line, wanted, obstacles, order)
    return TeamPlan(
        actions=() if observed.invalid else tuple(_actions(observed, wanted)),
        status=status,
        notes=team_notes(observed.status, status, order),
        check_in=_check_in(observed, line, order, now),
    )


def line_of(observed: TeamObserved, wanted: tuple[Wanted, ...], now: datetime) -> Line:
    agents = [observed.agents[one.supervisor] for one in wanted if belongs(observed, one)]
    return Line(
        spec=observed.spec,
        status=observed.status,
        agents=tuple(agents),
        now=now,
        mode=team_mode(observed, wanted, now),
        uid=observed.uid,
        missing=tuple(one.supervisor for one in wanted if not belongs(observed, one)),
    )


def belongs(observed: TeamObserved, wanted: Wanted) -> bool:
    """There, and ours: owned where we made it, not another team's where we only name it."""
    agent = observed.agents.get(wanted.supervisor)
    if agent is None:
        return False
    if wanted.spec is not None:
        return agent.owner == observed.uid
    return wanted.supervisor not in observed.held_by_others


def team_mode(observed: TeamObserved, wanted: tuple[Wanted, ...], now: datetime) -> OperatingMode:
    """Its own mode, or Stopped while the supervisor that leads it does not exist.

    A view that may be old stops nobody: the team's own pass asks the server, and the members obey
    what it wrote then.
    """
    spec = observed.spec
    if observed.supervisor_there or leads_itself(spec, wanted):
        return spec.operating_mode
    if spec.when_supervisor_gone is WhenSupervisorGone.KEEP:
        return spec.operating_mode
    gone = _resolved(observed)
    was_there = gone is not None and gone.reason != Reason.SUPERVISOR_NOT_FOUND
    if not was_there and not _is_alive(observed, wanted):
        return OperatingMode.STOPPED  # it never was there: wait for it without pods
    is_gone = (
        gone is not None
        and gone.status is ConditionStatus.FALSE
        and _age(gone, now) >= GONE_AFTER_SECONDS
        and (observed.asked_server or _is_stopped(observed))
    )
    stopped = OperatingMode.STOPPED if is_gone else OperatingMode.RUNNING
    return strictest([spec.operating_mode, stopped])


def _is_alive(observed: TeamObserved, wanted: tuple[Wanted, ...]) -> bool:
    """An agent of ours runs, whoever else's may."""
    ours = (observed.agents[one.supervisor] for one in wanted if belongs(observed, one))
    return any(agent.unfinished_order is not None for agent in ours)


def _resolved(observed: TeamObserved) -> Condition | None:
    return _condition(observed, TeamCondition.SUPERVISOR_RESOLVED)


def _is_stopped(observed: TeamObserved) -> bool:
    ready = _condition(observed, TeamCondition.READY)
    return ready is not None and ready.reason == Reason.STOPPED


def _condition(observed: TeamObserved, kind: TeamCondition) -> Condition | None:
    conditions = observed.status.conditions or ()
    return next((one for one in conditions if one.type == kind), None)


def _age(condition: Condition, now: datetime) -> float:
    since = condition.last_transition_time or now
    return max(0.0, (now - since).total_seconds())


def _obstacles(observed: TeamObserved, wanted: tuple[Wanted, ...]) -> Iterator[Obstacle]:
    for name, holder, other in doubles(observed.name, observed.spec):
        text = f"Supervisor {name} is member {holder} already: rename or remove member {other}"
        yield Obstacle(name, Reason.NAME_CONFLICT, text)
    for one in wanted:
        name, agent = one.supervisor, observed.agents.get(one.supervisor)
        if one.spec is None and agent is None:
            yield Obstacle(
                name, Reason.NOT_FOUND, f"there is no Supervisor {name} to assign: create it"
            )
        elif one.spec is None and name in observed.held_by_others:
            other = observed.held_by_others[name]
            text = f"Supervisor {name} belongs to team {other} already: remove it from one"
            yield Obstacle(name, Reason.ALREADY_ASSIGNED, text)
        elif one.spec is not None and agent and agent.owner != observed.uid:
            text = f"a Supervisor {name} that is not this team's exists: rename it or the member"
            yield Obstacle(name, Reason.NAME_CONFLICT, text)


def _actions(observed: TeamObserved, wanted: tuple[Wanted, ...]) -> Iterator[TeamAction]:
    made = {one.supervisor: one for one in wanted if one.spec is not None}
    for name, one in made.items():
        agent = observed.agents.get(name)
        if agent is None:
            yield CreateSupervisor(build_supervisor(observed, one), f"member {one.member} joins")
        elif agent.owner == observed.uid and has_drifted(agent, one):
            reason = f"member {one.member} differs from its template"
            yield PutBackSupervisor(agent, put_back(agent, one), reason)
    for name, agent in observed.agents.items():
        if agent.owner == observed.uid and name not in made and not agent.leaving:
            yield DeleteSupervisor(agent, "no longer a member")


def _check_in(
    observed: TeamObserved, line: Line, order: TeamOrder | None, now: datetime
) -> float | None:
    if order:
        return 0.0
    times = [observed.status.order.time] if observed.status.order else []
    window = timedelta(seconds=observed.spec.restart_window_seconds)
    ends = [(moment + window - now).total_seconds() for moment in times]
    gone = _resolved(observed)
    if gone and not observed.supervisor_there:
        ends.append(GONE_AFTER_SECONDS - _age(gone, now))
    coming = [end for end in ends if end > 0]
    return min(coming) if coming and line.agents else None
