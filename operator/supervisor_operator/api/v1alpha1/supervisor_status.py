"""What the operator says about one agent."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field

from supervisor_operator.api.base import FreeForm, WireModel
from supervisor_operator.api.v1alpha1.meta import Conditions, Health, Phase

Word = Annotated[str, Field(max_length=256)]


class OutcomeType(StrEnum):
    FINISHED = "Finished"
    FAILED = "Failed"


class Outcome(WireModel):
    """How the agent ended for good."""

    type: OutcomeType
    """Finished or Failed."""
    reason: Word = ""
    """Cause as one word."""
    run: int | None = None
    """Run that ended so."""
    template_hash: Word | None = None
    """Template of that run; a changed template starts the agent again."""
    restart_request: Word | None = None
    """restartRequest in force then; a new value starts the agent again."""
    child: Word | None = None
    """Child whose failure escalated here."""
    child_uid: Word | None = Field(default=None, alias="childUID")
    """UID of that child."""
    child_run: int | None = None
    """Run of that child."""


class LastTermination(WireModel):
    """The last end of a run, kept after its pod is gone."""

    exit_code: int | None = None
    """Exit code of the agent."""
    signal: int | None = None
    """Signal that ended it."""
    reason: Word | None = None
    """The kubelet's word, for example OOMKilled."""
    message: Annotated[str, Field(max_length=2048)] | None = None
    """Last words of the agent, at most 2 KiB."""
    finished_at: AwareDatetime | None = None
    """When it ended."""
    pod_name: Word | None = None
    """Pod it ran in."""


class Children(WireModel):
    """Counts over the supervisors directly below."""

    total: int = 0
    """All children."""
    active: int = 0
    """Children that are ACTIVE."""
    unresponsive: int = 0
    """Children that are UNRESPONSIVE."""
    failed: int = 0
    """Children that are FAILED."""


class ChildOrder(WireModel):
    """An order to a FAILED child to start again."""

    child: Word
    """Name of the child."""
    uid: Word
    """UID of the child."""
    run: int
    """Run that failed."""
    id: int
    """Number of the order."""
    time: AwareDatetime
    """When it was given."""


class MemberOf(WireModel):
    """The team this agent belongs to."""

    team: Word
    """Name of the team."""
    member: Word
    """Name of the member in it."""
    role: Word | None = None
    """Role of the member."""
    order: int | None = None
    """Number of the team's order that the newest run was started under."""


class LedTeam(WireModel):
    """A team that names this Supervisor in supervisorRef."""

    id: Word
    """UID of the team."""
    name: Word
    """Name of the team."""
    objective: Annotated[str, Field(max_length=1024)] | None = None
    """Its objective."""
    members: int = 0
    """Members that have not left."""
    active: int = 0
    """Members that are ACTIVE."""


class SupervisorStatus(WireModel):
    """Observed state; `phase` is derived for people, no decision reads it."""

    observed_generation: int = -1
    """metadata.generation this status was computed from; -1 before the first pass."""
    phase: Phase | None = None
    """SPAWNING, ACTIVE, PAUSED, FAILED or TERMINATED."""
    health: Health | None = None
    """HEALTHY, UNRESPONSIVE or UNKNOWN."""
    conditions: Conditions | None = None
    """Ready, Unresponsive and Paused always; others only while true."""
    outcome: Outcome | None = None
    """How the agent ended for good; absent while it is wanted."""
    run: int | None = None
    """Number of the newest run; its pod is NAME-r<run>."""
    restarts: int | None = None
    """All restarts so far."""
    restarts_counted: int | None = None
    """Restarts that count against maxRestarts."""
    forgiven_run: int | None = None
    """Pods up to this run no longer count; it only grows."""
    restart_summary: Word | None = None
    """Counted restarts of the allowed ones, for display."""
    last_restart_time: AwareDatetime | None = None
    """When the newest run was created."""
    next_restart_time: AwareDatetime | None = None
    """When the next run is due."""
    last_heartbeat_time: AwareDatetime | None = None
    """Last beat seen; refreshed under a write budget."""
    missed_heartbeats: int | None = None
    """Beats missed, written at transitions."""
    health_metrics: FreeForm | None = None
    """Metrics of the last beat, as the agent sent them."""
    pod_name: Word | None = None
    """Pod of the newest run."""
    pod_uid: Word | None = Field(default=None, alias="podUID")
    """UID of that pod."""
    node_name: Word | None = None
    """Node it runs on."""
    start_time: AwareDatetime | None = None
    """Start of the agent's container."""
    last_termination: LastTermination | None = None
    """The last end of a run."""
    hierarchy_level: int | None = None
    """0 at the top of the tree, plus 1 per parent."""
    children: Children | None = None
    """Counts over the supervisors directly below."""
    child_orders: Annotated[list[ChildOrder], Field(max_length=100)] | None = None
    """Orders to FAILED children to start again."""
    member_of: MemberOf | None = None
    """The team this agent belongs to."""
    teams: Annotated[list[LedTeam], Field(max_length=100)] | None = None
    """Teams this Supervisor leads, the first 100 by name."""
    total_teams: int | None = None
    """Number of teams it leads."""
    total_members: int | None = None
    """Members of those teams that have not left."""
