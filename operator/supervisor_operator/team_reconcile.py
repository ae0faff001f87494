"""One pass over one team: observe, plan, apply, report; like that over a Supervisor."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import assert_never

from supervisor_operator.core.team.observed import Obstacle, TeamObserved
from supervisor_operator.core.team.plan import (
    CreateSupervisor,
    DeleteSupervisor,
    PutBackSupervisor,
    TeamAction,
    TeamPlan,
    plan_team,
)
from supervisor_operator.core.words import Reason
from supervisor_operator.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from supervisor_operator.kube.cluster import SUPERVISORS, TEAMS, Cluster, Object
from supervisor_operator.kube.customs import Customs
from supervisor_operator.kube.report import Storyteller, dump_status, write_status
from supervisor_operator.kube.teams import Teams
from supervisor_operator.queue import Key
from supervisor_operator.reconcile import Clocks, NotYetError, Outcome

LOOK_AGAIN_SECONDS = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TeamParts:
    """What a pass over a team works with; built once, in `wiring`."""

    cluster: Cluster
    items: Customs
    supervisors: Customs
    teams: Teams
    teller: Storyteller
    clocks: Clocks


class TeamReconciler:
    def __init__(self, parts: TeamParts) -> None:
        self._parts = parts

    async def reconcile(self, key: Key) -> Outcome:
        parts = self._parts
        item = parts.items.get(key)
        if item is None or "deletionTimestamp" in item["metadata"]:
            return Outcome()
        wall = parts.clocks.wall()
        observed = await self._observe(key, item)
        plan = plan_team(observed, wall)
        if plan.actions:
            await self._make_sure_it_stands(item)
        obstacles = [
            obstacle for action in plan.actions if (obstacle := await self._apply(key, action))
        ]
        if plan.actions:
            observed = replace(await self._observe(key, item), obstacles=tuple(obstacles))
            plan = plan_team(observed, wall)
        await self._report(item, plan)
        if obstacles:
            return Outcome(backs_off=True)
        return Outcome(LOOK_AGAIN_SECONDS if plan.actions else plan.check_in)

    async def _observe(self, key: Key, item: Object) -> TeamObserved:
        """A supervisor that our store does not show is looked for on the server itself."""
        observed = self._parts.teams.observe(key, item)
        ref = observed.spec.supervisor_ref
        if observed.supervisor_there or ref is None:
            return observed
        with suppress(NotFoundError):
            await self._parts.cluster.get(SUPERVISORS, key[0], ref.name)
            raise NotYetError(f"Supervisor {ref.name} is there, but not in the store yet")
        return replace(observed, asked_server=True)

    async def _make_sure_it_stands(self, item: Object) -> None:
        """Nobody is made or removed for a team that is gone by now, or reads otherwise.

        Its own watch may be late while that of its members is not.
        """
        known = item["metadata"]
        try:
            found = await self._parts.cluster.get(TEAMS, known["namespace"], known["name"])
        except NotFoundError:
            self._parts.items.doubt()
            raise NotYetError(f"team {known['name']} is gone: waiting for the news") from None
        if any(found["metadata"].get(field) != known.get(field) for field in ("uid", "generation")):
            raise NotYetError(f"team {known['name']} has changed: waiting for the news")

    async def _apply(self, key: Key, action: TeamAction) -> Obstacle | None:
        if not (self._parts.supervisors.trusted and self._parts.items.trusted):
            raise NotYetError("the stores are not whole yet")
        _log.info("%s", action.reason, extra={"object": f"SupervisorTeam {key[0]}/{key[1]}"})
        name = _name(action)
        try:
            await self._carry_out(key[0], action)
        except ConflictError:
            return None  # there already, or changed meanwhile: the watch brings the news
        except (InvalidError, ForbiddenError) as error:
            return Obstacle(name, Reason.REFUSED, f"Supervisor {name} was refused: {error}")
        return None

    async def _carry_out(self, namespace: str, action: TeamAction) -> None:
        cluster = self._parts.cluster
        match action:
            case CreateSupervisor(manifest=manifest):
                await cluster.create(SUPERVISORS, namespace, manifest)
            case PutBackSupervisor(agent=agent, spec=spec):
                found = await cluster.get(SUPERVISORS, namespace, agent.name)
                if found["metadata"]["resourceVersion"] == agent.resource_version:
                    await cluster.replace(SUPERVISORS, namespace, found | {"spec": spec})
            case DeleteSupervisor(agent=agent):
                with suppress(NotFoundError):
                    await cluster.delete(SUPERVISORS, namespace, agent.name, uid=agent.uid)
            case _:
                assert_never(action)

    async def _report(self, item: Object, plan: TeamPlan) -> None:
        parts = self._parts
        written = await write_status(parts.cluster, TEAMS, item, dump_status(plan.status))
        if written is None:
            return
        parts.items.put(written)
        await parts.teller.tell(item, plan.notes)


def _name(action: TeamAction) -> str:
    if isinstance(action, CreateSupervisor):
        return str(action.manifest["metadata"]["name"])
    return action.agent.name
