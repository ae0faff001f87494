"""SupervisorTeam: agents with an objective, run and restarted together."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, WithJsonSchema

from supervisor_operator.api.base import (
    FreeForm,
    Name,
    WireModel,
    cel,
    list_map,
    rules,
)
from supervisor_operator.api.v1alpha1.agent import (
    AgentDefaults,
    HeartbeatPolicy,
    RestartPolicySpec,
)
from supervisor_operator.api.v1alpha1.meta import MAX_NAME, NameRef, OperatingMode
from supervisor_operator.api.v1alpha1.policies import RestartStrategy, WhenSupervisorGone
from supervisor_operator.api.v1alpha1.supervisor import WorkloadSpec
from supervisor_operator.api.v1alpha1.team_status import TeamStatus

MAX_MEMBERS = 100
MAX_AGENTS = 200
LEAD = "LEAD"


class MemberTemplate(WorkloadSpec):
    """A Supervisor's spec without references of its own."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            cel(
                "!has(self.parentRef)",
                "parentRef is not allowed in a member: the team's supervisorRef names who is above",
                ".parentRef",
            ),
            cel(
                "!has(self.restartRequest)",
                "restartRequest is not allowed in a member: set it on the team, or on the Supervisor itself",
                ".restartRequest",
            ),
        )
    )

    operating_mode: OperatingMode | None = None
    """Mode of this member; absent: left to whoever is on call."""
    heartbeat: HeartbeatPolicy | None = None
    """How the agent shows that it is alive; absent: the team's defaults."""
    restart: RestartPolicySpec | None = None
    """What happens when it is not; absent: the team's defaults."""
    parent_ref: FreeForm | None = None
    """Refused here: the team's supervisorRef names who is above."""
    restart_request: Annotated[str, Field(max_length=256)] | None = None
    """Refused here: set it on the team, or on the Supervisor itself."""


class Member(WireModel):
    """One entry of the team: one agent, or replicas of it."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            cel(
                "has(self.ref) != has(self.template)",
                "set exactly one of template (an agent of the team's own) and ref (an existing Supervisor)",
            ),
            cel(
                "!has(self.ref) || !has(self.replicas)",
                "replicas go with template: a ref is one existing Supervisor",
                ".replicas",
            ),
            cel(
                f"self.role != '{LEAD}' || !has(self.replicas) || self.replicas == 1",
                f"a {LEAD} has one replica: leave replicas out or set it to 1",
                ".replicas",
            ),
        )
    )

    name: Annotated[Name, Field(max_length=50)]
    """Name of the member, part of its Supervisors' names."""
    role: Annotated[str, Field(min_length=1, max_length=32)] = "MEMBER"
    """Role as one word of at most 32 characters; at most one LEAD. Default MEMBER."""
    replicas: Annotated[int, Field(ge=0, le=MAX_AGENTS)] | None = None
    """Number of agents, called -1 to -n; absent: one agent without a number."""
    metadata: FreeForm | None = None
    """Free-form notes, copied to status.members."""
    template: MemberTemplate | None = None
    """An agent of the team's own."""
    ref: NameRef | None = None
    """An existing Supervisor, assigned without ownership."""


ONE_LEAD = cel(
    f"self.filter(m, m.role == '{LEAD}').size() <= 1",
    f"at most one member has the role {LEAD}: give the others another role",
)
AGENT_LIMIT = cel(
    f"self.map(m, has(m.replicas) ? m.replicas : 1).sum() <= {MAX_AGENTS}",
    f"a team has at most {MAX_AGENTS} agents: lower replicas or split the team",
)
UNHEALTHY_SHAPE = cel(
    "type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",
    "maxUnhealthy must be a number of agents or a percentage from 0% to 100%",
)
CountOrPercent = Annotated[
    int | str,
    WithJsonSchema({"x-kubernetes-int-or-string": True} | rules(UNHEALTHY_SHAPE)),
]


class TeamSpec(WireModel):
    """Desired state of a team."""

    supervisor_ref: NameRef | None = None
    """The Supervisor that leads this team."""
    when_supervisor_gone: WhenSupervisorGone = WhenSupervisorGone.STOP
    """Stop stops the members while the Supervisor does not exist, Keep lets them run. Default Stop."""
    objective: Annotated[str, Field(max_length=1024)] | None = None
    """What the team is for."""
    description: Annotated[str, Field(max_length=1024)] | None = None
    """Free text for people."""
    config: FreeForm | None = None
    """Free-form settings, at most 64 KiB."""
    operating_mode: OperatingMode = OperatingMode.RUNNING
    """Paused and Stopped override the members. Default Running."""
    defaults: AgentDefaults | None = None
    """Blocks for members that lack them."""
    members: Annotated[
        list[Member],
        Field(
            max_length=MAX_MEMBERS,
            json_schema_extra=list_map("name") | rules(ONE_LEAD, AGENT_LIMIT),
        ),
    ] = Field(default_factory=list)
    """The agents, in the order in which they are started."""
    restart_strategy: RestartStrategy = RestartStrategy.ONE_FOR_ONE
    """Who is restarted with a failed member: itself, all, or it and those after it. Default OneForOne."""
    max_team_restarts: Annotated[int, Field(ge=0, le=1000)] = 5
    """Group restarts within restartWindowSeconds before the team is FAILED. Default 5."""
    restart_window_seconds: Annotated[int, Field(ge=1, le=604_800)] = 600
    """Window of maxTeamRestarts in seconds. Default 600."""
    restart_request: Annotated[str, Field(max_length=256)] | None = None
    """Any new value asks for one ordered restart of all, outside the budget; the way out of FAILED."""
    max_unhealthy: CountOrPercent | None = None
    """Unhealthy members, a number or a percentage, above which nobody is restarted."""
    max_concurrent_restarts: Annotated[int, Field(ge=1, le=MAX_AGENTS)] = 1
    """Members restarted at the same time with OneForOne. Default 1."""


CHILD_NAME_RULE = cel(
    "!has(self.spec.members) || self.spec.members.all(m, has(m.ref) || size(self.metadata.name) + 1 + "
    f"size(m.name) + (has(m.replicas) ? 1 + size(string(m.replicas)) : 0) <= {MAX_NAME})",
    f"team name, member name and number together must be at most {MAX_NAME} characters: shorten one",
    ".spec.members",
)


class SupervisorTeam(WireModel):
    """A group of agents with an objective, run and restarted together."""

    model_config = ConfigDict(json_schema_extra=rules(CHILD_NAME_RULE))

    api_version: str
    """APIVersion of this object."""
    kind: str
    """Kind of this object."""
    metadata: FreeForm
    """Standard object metadata."""
    spec: TeamSpec
    """What is wanted."""
    status: TeamStatus = Field(
        default_factory=TeamStatus,
        json_schema_extra={"default": {"observedGeneration": -1}},
    )
    """What is, written by the operator."""
