"""What one pass over a team looks at, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from supervisor_operator.api.v1alpha1.meta import Health, OperatingMode, Phase
from supervisor_operator.api.v1alpha1.team import TeamSpec
from supervisor_operator.api.v1alpha1.team_status import TeamStatus
from supervisor_operator.core.words import Reason

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PodStamp:
    """A pod of an agent, and the order under which it was started."""

    run: int
    order: int
    finished: bool


@dataclass(frozen=True, slots=True)
class AgentView:
    """A Supervisor as its team sees it."""

    name: str
    uid: str
    owner: str
    created: datetime
    spec: Json
    resource_version: str = ""
    mode: OperatingMode = OperatingMode.RUNNING
    phase: Phase | None = None
    health: Health | None = None
    restarts: int = 0
    finished: bool = False
    failed: bool = False
    failed_reason: str = ""
    waiting: bool = False
    """A counted failure is on record, and what follows is the team's to say."""
    backing_off: bool = False
    next_restart: datetime | None = None
    last_restart: datetime | None = None
    """None also where a new pod is there and status does not tell of it yet."""
    pod_uid: str = ""
    startup_seconds: int = 120
    pods: tuple[PodStamp, ...] = ()

    @property
    def order(self) -> int:
        """The order that its newest pod was started under."""
        return max(self.pods, key=lambda pod: pod.run).order if self.pods else 0

    @property
    def unfinished_order(self) -> int | None:
        return next((pod.order for pod in self.pods if not pod.finished), None)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A member that cannot be had, by the name of its Supervisor."""

    supervisor: str
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class TeamObserved:
    name: str
    namespace: str
    uid: str
    generation: int
    spec: TeamSpec
    status: TeamStatus
    agents: Mapping[str, AgentView] = field(default_factory=dict)
    """All Supervisors that the team owns or names, by name."""
    held_by_others: Mapping[str, str] = field(default_factory=dict)
    """Supervisors that this team names and that belong to another one: its name."""
    supervisor_there: bool = True
    obstacles: tuple[Obstacle, ...] = ()
    """Refusals met in this pass."""
    invalid: str = ""
