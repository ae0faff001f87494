"""What the operator says about a team."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from supervisor_operator.api.base import FreeForm, WireModel
from supervisor_operator.api.v1alpha1.meta import Conditions, Health, Phase
from supervisor_operator.api.v1alpha1.supervisor_status import Word


class OrderTrigger(WireModel):
    """The failure that led to a group restart."""

    supervisor: Word
    """Supervisor that failed."""
    pod_uid: Word | None = Field(default=None, alias="podUID")
    """UID of its pod."""


class TeamOrder(WireModel):
    """The group restart in force."""

    id: int
    """Number of the order; grows by 1."""
    time: AwareDatetime
    """When it was given."""
    reason: Word
    """Cause as one word."""
    trigger: OrderTrigger | None = None
    """The failure behind it."""
    members: Annotated[list[Word], Field(max_length=200)] = Field(default_factory=list)
    """Supervisors that obey it, in list order."""


class MemberStatus(WireModel):
    """One stay of one agent in the team."""

    name: Word
    """Name of the member."""
    role: Word
    """Its role."""
    supervisor: Word
    """Its Supervisor."""
    agent_id: Word | None = None
    """UID of that Supervisor."""
    phase: Phase | None = None
    """Phase of the agent."""
    health: Health | None = None
    """Health of the agent."""
    restarts: int | None = None
    """Restarts of the agent."""
    joined_at: AwareDatetime | None = None
    """When it joined."""
    left_at: AwareDatetime | None = None
    """When it left; absent while it belongs to the team."""
    metadata: FreeForm | None = None
    """Notes from spec, as long as those of all entries together take no more than 8 KiB."""


class TeamStatus(WireModel):
    """Observed state of a team."""

    observed_generation: int = -1
    """metadata.generation this status was computed from; -1 before the first pass."""
    phase: Phase | None = None
    """SPAWNING, ACTIVE, PAUSED, FAILED or TERMINATED."""
    conditions: Conditions | None = None
    """Ready, Degraded, RemediationAllowed, SupervisorResolved, MembersResolved; Reconciling and Stalled while true."""
    member_count: int | None = None
    """Agents that belong to the team now."""
    ready: int | None = None
    """Agents that are ACTIVE and HEALTHY."""
    unresponsive: int | None = None
    """Agents that are UNRESPONSIVE."""
    failed: int | None = None
    """Agents that are FAILED."""
    ready_summary: Word | None = None
    """Ready agents of all, for display."""
    lead: Word | None = None
    """Supervisor of the LEAD."""
    order: TeamOrder | None = None
    """The group restart in force."""
    handled_restart_request: Word | None = None
    """The restartRequest that was answered last; a new value asks for another group restart."""
    order_times: Annotated[list[AwareDatetime], Field(max_length=1000)] | None = None
    """Group restarts within the window."""
    members: Annotated[list[MemberStatus], Field(max_length=250)] | None = None
    """One entry per agent and stay; at most 50 that left."""
