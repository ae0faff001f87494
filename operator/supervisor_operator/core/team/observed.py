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
class AgentView:
    """A Supervisor as its team sees it."""

    name: str
    uid: str
    owner: str
    created: datetime
    spec: Json
    resource_version: str = ""
    leaving: bool = False
    """Being deleted: it takes no orders any more."""
    mode: OperatingMode = OperatingMode.RUNNING
    """The strictest of its own and of those above it; not its team's."""
    phase: Phase | None = None
    health: Health | None = None
    restarts: int = 0
    finished: bool = False
    failed: bool = False
    failed_reason: str = ""
    waiting: bool = False
    """A counted failure is on record, and what follows is the team's to say."""
    backing_off: bool = False
    refused: bool = False
    """Its pod may not be made at present, whoever asks for it."""
    unreadable: bool = False
    """Its spec cannot be read, so that its pod is left alone."""
    next_restart: datetime | None = None
    last_restart: datetime | None = None
    """None also where a new pod is there and status does not tell of it yet."""
    pod_uid: str = ""
    startup_seconds: int = 120
    order: int = 0
    """The order that its newest run was started under."""
    unfinished_order: int | None = None
    """The order of the pod that is not finished; None: there is none."""

    @property
    def can_obey(self) -> bool:
        is_able = not (self.finished or self.leaving or self.unreadable)
        return is_able and self.mode is OperatingMode.RUNNING


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
    asked_server: bool = False
    """The server itself said in this pass that the supervisor is not there."""
    obstacles: tuple[Obstacle, ...] = ()
    """Refusals met in this pass."""
    invalid: str = ""
