"""What comes in and goes out, beside the models of the kinds themselves."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AwareDatetime, ConfigDict, Field

from supervisor_operator.api.base import FreeForm, WireModel
from supervisor_operator.api.v1alpha1.meta import Health, OperatingMode, Phase
from supervisor_operator.api.v1alpha1.supervisor import SupervisorSpec
from supervisor_operator.api.v1alpha1.supervisor_status import LedTeam, SupervisorStatus
from supervisor_operator.api.v1alpha1.team import Member, TeamSpec
from supervisor_operator.api.v1alpha1.team_status import MemberStatus, TeamStatus
from supervisor_operator.core.health.report import Level

NAME = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=NAME)]
Labels = dict[str, str]


class Incoming(WireModel):
    """A field that nobody knows is a mistake to be told of."""

    model_config = ConfigDict(extra="forbid")


class NewSupervisor(Incoming):
    """A Supervisor to be made."""

    name: ObjectName
    """Its name, at most 52 characters."""
    namespace: ObjectName = "default"
    """Its namespace. Default default."""
    labels: Labels | None = None
    """Its labels."""
    spec: SupervisorSpec
    """What is wanted, as in the kind itself; the API server checks every field."""


class NewTeam(Incoming):
    """A SupervisorTeam to be made."""

    name: ObjectName
    """Its name."""
    namespace: ObjectName = "default"
    """Its namespace. Default default."""
    labels: Labels | None = None
    """Its labels."""
    spec: TeamSpec
    """What is wanted, as in the kind itself; the API server checks every field."""


class Change(Incoming):
    """Changes of an object, as a JSON merge patch: null removes a field, lists are replaced."""

    labels: dict[str, str | None] | None = None
    """Labels to set, or to remove with null."""
    spec: FreeForm | None = None
    """Fields of spec to set, or to remove with null."""
    resource_version: str | None = None
    """Change only this version of the object; another one answers 409."""


class RestartOrder(Incoming):
    """Why a restart is asked for."""

    request: Annotated[str, Field(min_length=1, max_length=256)]
    """The new restartRequest; the value that is there already asks for nothing."""


class NewMember(Incoming, Member):
    """A member to be added at the end of the list."""


class _Shown(WireModel):
    id: str
    """UID of the object."""
    namespace: str
    """Its namespace."""
    name: str
    """Its name."""
    labels: Labels
    """Its labels."""
    generation: int
    """Grows with each change of spec."""
    resource_version: str
    """Version of the object, for changes that must not overwrite another's."""
    created_at: AwareDatetime | None = None
    """When it was made."""
    level: Level
    """HEALTHY, DEGRADED, UNHEALTHY or UNKNOWN, by what the operator wrote."""


class SupervisorOut(_Shown):
    """A Supervisor."""

    spec: SupervisorSpec
    """What is wanted."""
    status: SupervisorStatus
    """What is, as the operator wrote it."""


class TeamOut(_Shown):
    """A SupervisorTeam."""

    spec: TeamSpec
    """What is wanted."""
    status: TeamStatus
    """What is, as the operator wrote it."""


class _Page(WireModel):
    total: int
    """How many objects match, on all pages."""
    next: str | None = Field(default=None, alias="continue")
    """Give it as `continue` for the next page; absent on the last one."""


class SupervisorPage(_Page):
    """Supervisors by namespace and name."""

    items: list[SupervisorOut]
    """Those of this page."""


class TeamPage(_Page):
    """Teams by namespace and name."""

    items: list[TeamOut]
    """Those of this page."""


class TeamsOfSupervisor(WireModel):
    """The teams that a Supervisor leads."""

    id: str
    """UID of the Supervisor."""
    status: Phase | None = None
    """Its phase."""
    teams: list[LedTeam]
    """Teams that name it in supervisorRef."""
    total_teams: int
    """Number of these teams."""
    total_members: int
    """Their members that have not left."""


class Members(WireModel):
    """Who is and who was in a team."""

    members: list[MemberStatus]
    """Agents that belong to it."""
    left: list[MemberStatus]
    """Stays that are over, the latest 50."""


class Brief(WireModel):
    """One agent in the snapshot."""

    id: str
    """UID of the Supervisor."""
    namespace: str
    """Its namespace."""
    name: str
    """Its name."""
    level: Level
    """HEALTHY, DEGRADED, UNHEALTHY or UNKNOWN."""
    reason: str
    """Cause as one word."""
    cause: str
    """Cause in words."""
    next_step: str
    """What to do now, in words."""
    since: AwareDatetime | None = None
    """Since when it is ready, or is not."""
    last_beat: AwareDatetime | None = None
    """When an agent that is not HEALTHY beat last, as the operator wrote it."""
    mode: OperatingMode
    """What its own spec wants."""
    generation: int
    """Generation of its spec."""
    phase: Phase | None = None
    """SPAWNING, ACTIVE, PAUSED, FAILED or TERMINATED."""
    health: Health | None = None
    """HEALTHY, UNRESPONSIVE or UNKNOWN."""
    pod: str | None = None
    """Pod of the newest run."""
    run: int
    """Number of that run."""
    restarts: int
    """All restarts so far."""
    parent: str | None = None
    """The supervisor above."""
    team: str | None = None
    """The team it belongs to."""


class SnapshotOut(WireModel):
    """All agents at one moment; what one version shows never changes."""

    version: int
    """Grows with each change, within one run of the API."""
    event_id: str
    """Give it as Last-Event-ID to read what happens from here on."""
    supervisors: list[Brief]
    """The agents, by namespace and name."""


class BeatSeen(WireModel):
    """One beat."""

    time: AwareDatetime
    """When the agent beat."""
    pod: str
    """The pod it ran in."""


class Beats(WireModel):
    """The latest beats of one agent, as this process saw them come."""

    now: AwareDatetime
    """The time of this answer."""
    since: AwareDatetime
    """Beats before that are not told."""
    interval_seconds: int = 0
    """Seconds between two beats; 0 where no beats are expected."""
    allowed: int = 0
    """Beats that may be missed; one more is UNRESPONSIVE."""
    beats: list[BeatSeen] = Field(default_factory=list)
    """Beats, the oldest first."""
    missed: list[AwareDatetime] = Field(default_factory=list)
    """When one was due and did not come."""


class EventSeen(WireModel):
    """One Event."""

    time: AwareDatetime
    """When it happened last."""
    type: str
    """Normal or Warning."""
    reason: str
    """Cause as one word."""
    note: str
    """Cause in words."""
    about: str
    """Kind and name of the object."""
    count: int
    """How often it happened."""


class Story(WireModel):
    """The Events about one Supervisor and its newest pod."""

    events: list[EventSeen]
    """Events, the latest first; the API server keeps them for an hour unless told otherwise."""


class FieldProblem(WireModel):
    """One field and what is wrong with it."""

    field: str
    """Path of the field."""
    value: str | None = None
    """The value that was given, shortened."""
    fix: str
    """What is allowed there."""


class Problem(WireModel):
    """Why a request was not answered as asked (RFC 9457)."""

    type: str = "about:blank"
    """about:blank: status and title say all."""
    title: str
    """The status in words."""
    status: int
    """The status code."""
    detail: str
    """What happened; of a refusal the API server's own words."""
    reason: str | None = None
    """The API server's word for it."""
    fix: str | None = None
    """What to do now."""
    errors: list[FieldProblem] | None = None
    """The fields that are wrong."""


Json = dict[str, Any]
