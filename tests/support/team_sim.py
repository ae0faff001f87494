"""A team in memory: every member a `Sim` of its own, the team's own plan beside them, one clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, Self

from supervisor_operator.api.v1alpha1.meta import OperatingMode
from supervisor_operator.api.v1alpha1.team import TeamSpec
from supervisor_operator.api.v1alpha1.team_status import TeamStatus
from supervisor_operator.core.team.members import wanted_agents
from supervisor_operator.core.team.observed import AgentView, TeamObserved
from supervisor_operator.core.team.orders import link_of
from supervisor_operator.core.team.plan import (
    CreateSupervisor,
    DeleteSupervisor,
    PutBackSupervisor,
    TeamPlan,
    belongs,
    line_of,
    plan_team,
)
from supervisor_operator.core.tree import strictest
from supervisor_operator.kube.agents import view_agent
from supervisor_operator.kube.family import mode_of
from supervisor_operator.kube.report import dump_status
from tests.support.sim import START, Sim

TEAM, UID = "crew", "uid-of-crew"
NONE = {"source": "None"}


def member(name: str, **fields: Any) -> dict[str, Any]:
    template = {"agent": {"image": "a"}, "heartbeat": NONE} | fields.pop("template", {})
    return {"name": name, "template": template} | fields


class TeamSim:
    def __init__(self, *members: dict[str, Any], **spec: Any) -> None:
        self.spec_json: dict[str, Any] = {"members": list(members)} | spec
        self.status = TeamStatus()
        self.generation = 1
        self.agents: dict[str, Sim] = {}
        self.owners: dict[str, str] = {}
        self.supervisor_there = True
        self.asks_server = True
        self.held: dict[str, str] = {}
        self.leaving: set[str] = set()
        """Supervisors that are being deleted in the foreground."""
        self.mono = 1000.0
        self.skew = 0.0
        self.log: list[str] = []
        self.history: list[str] = []
        self.writes = 0
        self._born: dict[str, datetime] = {}
        self._uids = 0

    @property
    def wall(self) -> datetime:
        any_sim = Sim()
        any_sim.mono, any_sim.skew = self.mono, self.skew
        return any_sim.wall

    # The story

    def settle(self) -> Self:
        for _ in range(40):
            if not self._round():
                return self
        raise AssertionError(f"never settles: {self.log[-8:]}")

    def wait(self, seconds: float) -> Self:
        end = self.mono + seconds
        while self.mono < end:
            self.mono = min(end, self.mono + 1.0)
            self.settle()
        return self

    def start(self, *names: str) -> Self:
        """The kubelet starts these agents' pods, or all that wait for it."""
        for name in names or [*self.agents]:
            sim = self.agents[name]
            if sim.unfinished and not sim.pod.running and not sim.pod.terminating:
                self._sync(sim)
                sim.start()
        return self.settle()

    def crash(self, name: str, code: int = 3) -> Self:
        sim = self._sync(self.agents[name])
        sim.exit(code)
        return self.settle()

    def reap(self) -> Self:
        """The kubelet has ended what was told to go; one round may lead to the next."""
        for _ in range(10):
            going = [
                (sim, pod)
                for sim in self.agents.values()
                for pod in list(sim.pods.values())
                if pod.terminating
            ]
            for sim, pod in going:
                self.history.append(f"- {pod.name}")
                self._sync(sim).remove(pod.name)
            self.settle()
            if not going:
                return self
        return self

    def edit(self, **spec: Any) -> Self:
        self.spec_json |= spec
        self.generation += 1
        return self.settle()

    def edit_agent(self, name: str, **spec: Any) -> Self:
        self._sync(self.agents[name]).edit(**spec)
        return self.settle()

    def put_above(self, name: str, mode: str) -> Self:
        """A parent of this agent, not of its team, has this mode."""
        self.agents[name].mode_above = OperatingMode(mode)
        return self.settle()

    def phases(self) -> dict[str, str]:
        return {name: str(sim.status.phase) for name, sim in self.agents.items()}

    def pods(self) -> list[str]:
        return [pod.name for sim in self.agents.values() for pod in sim.unfinished]

    def condition(self, kind: str) -> str:
        found = next((one for one in self.status.conditions or () if one.type == kind), None)
        return f"{found.status}/{found.reason}" if found else "-"

    def message(self, kind: str) -> str:
        return next(one.message for one in self.status.conditions or () if one.type == kind)

    # The operator

    def observe(self) -> TeamObserved:
        spec = TeamSpec.model_validate(self.spec_json)
        return TeamObserved(
            name=TEAM,
            namespace="default",
            uid=UID,
            generation=self.generation,
            spec=spec,
            status=self.status,
            agents={name: self._view(name) for name in self.agents},
            held_by_others=self.held,
            supervisor_there=self.supervisor_there,
        )

    def plan(self) -> TeamPlan:
        asked = replace(self.observe(), asked_server=self.asks_server)
        return plan_team(asked, self.wall)

    def _round(self) -> bool:
        changed = self._team_pass()
        for name in list(self.agents):
            changed |= self._member_pass(name)
        return changed

    def _team_pass(self) -> bool:
        plan = self.plan()
        for action in plan.actions:
            match action:
                case CreateSupervisor(manifest=manifest):
                    self.add(manifest["metadata"]["name"], manifest["spec"], owner=UID)
                case PutBackSupervisor(agent=agent, spec=spec):
                    self.agents[agent.name].spec_json = spec
                    self.agents[agent.name].generation += 1
                case DeleteSupervisor(agent=agent):
                    self.delete(agent.name)
        if plan.actions:
            plan = self.plan()
        if plan.status == self.status:
            return bool(plan.actions)
        self.status = TeamStatus.model_validate(
            plan.status.model_dump(by_alias=True, mode="json", exclude_none=True)
        )
        self.writes += 1
        self.log += [f"{note.reason}: {note.text}" for note in plan.notes]
        return True

    def add(self, name: str, spec: dict[str, Any], owner: str = "") -> Self:
        """A Supervisor comes into being."""
        sim = Sim(name)
        sim.spec_json = spec
        self._uids += 1
        sim.uid = f"uid-{self._uids}"
        self.agents[name], self.owners[name] = sim, owner
        self._born[name] = self.wall.replace(microsecond=0)
        return self

    def delete(self, name: str) -> Self:
        """A Supervisor is gone, and its pods with it."""
        del self.agents[name]
        self.leaving.discard(name)
        return self

    def _member_pass(self, name: str) -> bool:
        if name in self.leaving:
            return False
        sim = self._sync(self.agents[name])
        before = len(sim.created)
        changed = sim.one_pass()
        self.history += [f"+ {pod}" for pod in sim.created[before:]]
        return changed

    def _sync(self, sim: Sim) -> Sim:
        sim.mono, sim.skew = self.mono, self.skew
        observed = self.observe()
        wanted = wanted_agents(TEAM, observed.spec)
        mine = next((one for one in wanted if one.supervisor == sim.name), None)
        sim.link = None
        if mine and belongs(observed, mine):
            line = line_of(observed, wanted, self.wall)
            sim.link = link_of(line, sim.name, team=TEAM, member=mine.member, role=mine.role)
        return sim

    def _view(self, name: str) -> AgentView:
        sim = self.agents[name]
        owners = [{"uid": self.owners[name], "controller": True}] if self.owners[name] else []
        item = {
            "metadata": {
                "name": name,
                "uid": sim.uid,
                "ownerReferences": owners,
                "creationTimestamp": self._born.get(name, START).isoformat(),
                "resourceVersion": "1",
            }
            | ({"deletionTimestamp": "now"} if name in self.leaving else {}),
            "spec": sim.spec_json,
            "status": dump_status(sim.status),
        }
        mode = strictest([mode_of(item), *filter(None, [sim.mode_above])])
        return view_agent(item, sim.pods.values(), mode)
