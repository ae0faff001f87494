"""The answer itself, in the shape in which it leaves us."""

from __future__ import annotations

from enum import StrEnum

from pydantic import AwareDatetime, Field

from supervisor_operator.api.base import WireModel
from supervisor_operator.api.v1alpha1.meta import Condition, Health, OperatingMode, Phase


class Level(StrEnum):
    """How much an agent asks for: nothing, patience, a person; or nobody can tell yet."""

    HEALTHY = "HEALTHY"
    DEGRADED = "DEGRADED"
    UNHEALTHY = "UNHEALTHY"
    UNKNOWN = "UNKNOWN"


class HeartbeatReport(WireModel):
    """The last sign of life."""

    last_time: AwareDatetime | None = None
    """When the agent last beat; absent before its first beat and without heartbeats."""
    age_seconds: int | None = None
    """Seconds since then."""
    missed: int = 0
    """Beats missed since then."""
    allowed: int = 0
    """Beats that may be missed; one more is UNRESPONSIVE."""
    interval_seconds: int = 0
    """Seconds between two beats; 0 where no beats are expected."""
    problem: str | None = None
    """Why the relay could not read a beat."""


class RestartReport(WireModel):
    """The restart budget."""

    used: int = 0
    """Restarts that count against the budget."""
    left: int = 0
    """Restarts left before giving up."""
    total: int = 0
    """All restarts so far, counted or not."""
    next_time: AwareDatetime | None = None
    """When the next run is due."""


class HealthReport(WireModel):
    """Is it well, why not, and what now."""

    id: str
    """UID of the Supervisor."""
    namespace: str
    """Its namespace."""
    name: str
    """Its name."""
    level: Level
    """HEALTHY: it is as wanted. DEGRADED: it is not, and is being repaired or works in part.
    UNHEALTHY: it stays so until somebody acts. UNKNOWN: nobody can tell yet."""
    phase: Phase | None = None
    """SPAWNING, ACTIVE, PAUSED, FAILED or TERMINATED."""
    health: Health | None = None
    """The agent itself: HEALTHY, UNRESPONSIVE or UNKNOWN."""
    mode: OperatingMode
    """operatingMode of its own spec."""
    reason: str = ""
    """Cause as one word."""
    cause: str
    """Cause in words."""
    next_step: str
    """What to do now, in words."""
    commands: list[str] = Field(default_factory=list)
    """Commands that do it, in this order."""
    pod: str | None = None
    """Pod of the newest run."""
    node: str | None = None
    """Node it runs on."""
    heartbeat: HeartbeatReport
    """The last sign of life."""
    restarts: RestartReport
    """The restart budget."""
    conditions: list[Condition] = Field(default_factory=list)
    """The conditions as the operator wrote them."""
