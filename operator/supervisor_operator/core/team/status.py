"""The status of a team: members with their stays, the order in force, and the roll-up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

from supervisor_operator.api.v1alpha1.meta import Health, Phase
from supervisor_operator.api.v1alpha1.team import LEAD
from supervisor_operator.api.v1alpha1.team_status import MemberStatus, TeamOrder, TeamStatus
from supervisor_operator.core.conditions import update_conditions
from supervisor_operator.core.team.conditions import said_of, shown
from supervisor_operator.core.team.members import Wanted
from supervisor_operator.core.team.observed import AgentView, Obstacle, TeamObserved
from supervisor_operator.core.team.orders import REQUEST, Line

LEFT_KEPT = 50
METADATA_ROOM = 8 * 1024


def compute_team_status(
    observed: TeamObserved,
    line: Line,
    wanted: tuple[Wanted, ...],
    obstacles: tuple[Obstacle, ...],
    order: TeamOrder | None,
) -> TeamStatus:
    old, now = observed.status, line.now.replace(microsecond=0)
    said = said_of(observed, line, wanted, obstacles)
    told = {
        "observed_generation": observed.generation,
        "conditions": update_conditions(old.conditions or (), said, observed.generation, now),
    }
    if observed.invalid:  # who belongs to it is not known, so all else stays as it was
        return old.model_copy(update=told)
    more = {
        "lead": next((one.supervisor for one in wanted if one.role == LEAD), None),
        "order": order or old.order,
        "order_times": _order_times(line, order) or None,
        "handled_restart_request": observed.spec.restart_request,
        "members": _members(old, line, wanted, now) or None,
    }
    return old.model_copy(update=told | _roll_up(line) | more)


def _roll_up(line: Line) -> dict[str, object]:
    agents = line.agents
    ready = sum(agent.phase is Phase.ACTIVE and agent.health is Health.HEALTHY for agent in agents)
    phase, *_ = shown(line)
    return {
        "phase": phase,
        "member_count": len(agents),
        "ready": ready,
        "unresponsive": sum(agent.health is Health.UNRESPONSIVE for agent in agents),
        "failed": sum(agent.failed for agent in agents),
        "ready_summary": f"{ready}/{len(agents)}",
    }


def _order_times(line: Line, order: TeamOrder | None) -> list[datetime]:
    """Group restarts that count; one that somebody asked for gives the budget back."""
    if order and order.reason == REQUEST:
        return []
    return [*line.order_times, order.time] if order else line.order_times


def _members(
    old: TeamStatus, line: Line, wanted: tuple[Wanted, ...], now: datetime
) -> list[MemberStatus]:
    there = {agent.name: agent for agent in line.agents}
    stays = {
        (stay.name, stay.supervisor, stay.agent_id): stay
        for stay in old.members or ()
        if stay.left_at is None
    }
    current = []
    for one in wanted:
        agent = there.get(one.supervisor)
        if agent is not None:
            stay = stays.pop((one.member, agent.name, agent.uid), None)
            joined = stay.joined_at if stay else (agent.created if one.spec is not None else now)
            current.append(_member(one, agent, joined))
    left = [stay for stay in old.members or () if stay.left_at is not None]
    left += [stay.model_copy(update={"left_at": now}) for stay in stays.values()]
    return list(_with_room([*current, *left[-LEFT_KEPT:]]))


def _with_room(stays: list[MemberStatus]) -> Iterator[MemberStatus]:
    """Each agent repeats the notes of its member: those that would make the status large go."""
    room = METADATA_ROOM
    for stay in stays:
        room -= len(json.dumps(stay.metadata)) if stay.metadata else 0
        yield stay if room >= 0 or not stay.metadata else stay.model_copy(update={"metadata": None})


def _member(wanted: Wanted, agent: AgentView, joined: datetime | None) -> MemberStatus:
    return MemberStatus(
        name=wanted.member,
        role=wanted.role,
        supervisor=agent.name,
        agent_id=agent.uid,
        phase=agent.phase,
        health=agent.health,
        restarts=agent.restarts,
        joined_at=joined,
        metadata=wanted.metadata,
    )
