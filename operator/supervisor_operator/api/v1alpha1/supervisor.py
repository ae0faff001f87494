"""Supervisor: one long-lived agent, kept alive."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from supervisor_operator.api.base import FreeForm, WireModel, cel, group, rules
from supervisor_operator.api.v1alpha1.agent import AgentSpec, HeartbeatPolicy, RestartPolicySpec
from supervisor_operator.api.v1alpha1.meta import MAX_NAME, NameRef, OperatingMode
from supervisor_operator.api.v1alpha1.policies import ChildFailurePolicy, UpdateStrategy
from supervisor_operator.api.v1alpha1.supervisor_status import SupervisorStatus


class WorkloadSpec(WireModel):
    """What a Supervisor and a team member's template say alike."""

    description: Annotated[str, Field(max_length=1024)] | None = None
    """Free text for people."""
    policy_version: Annotated[str, Field(max_length=128)] | None = None
    """Opaque version for policy engines; the operator only carries it."""
    agent: AgentSpec | None = None
    """The agent to run. Absent: a node of the tree without a pod, its phase taken from its children."""
    update_strategy: UpdateStrategy = group(UpdateStrategy)
    """How a changed agent reaches the running pod."""
    progress_deadline_seconds: Annotated[int, Field(ge=1, le=86_400)] = 600
    """Seconds a pod may stay Pending before Stalled is set; a pending pod is never restarted. Default 600."""
    child_failure_policy: ChildFailurePolicy = ChildFailurePolicy.IGNORE
    """Answer to a child that is FAILED: Ignore reports it, Restart orders it to start again within this
    supervisor's own maxRestarts, Fail makes this one FAILED too. Default Ignore."""
    config: FreeForm | None = None
    """Free-form settings, at most 64 KiB, given to the agent as a file."""


class SupervisorSpec(WorkloadSpec):
    """Desired state of one agent."""

    operating_mode: OperatingMode = OperatingMode.RUNNING
    """Running; Paused keeps the pod but judges and restarts nothing; Stopped means no pod. Default Running."""
    heartbeat: HeartbeatPolicy = group(HeartbeatPolicy)
    """How the agent shows that it is alive. It is UNRESPONSIVE after a silence of (missedThreshold + 1)
    times intervalSeconds, 120 seconds by default."""
    restart: RestartPolicySpec = group(RestartPolicySpec)
    """What happens when it is not: the restart budget."""
    restart_request: Annotated[str, Field(max_length=256)] | None = None
    """Any new non-empty value asks for one restart outside the budget, also out of FAILED and TERMINATED.
    The value present at creation counts as handled."""
    parent_ref: NameRef | None = None
    """The supervisor above this one."""


NAME_RULES = rules(
    cel(
        f"size(self.metadata.name) <= {MAX_NAME}",
        f"metadata.name must be at most {MAX_NAME} characters: the pod's name adds -r<run>",
    ),
    cel(
        "!has(self.spec.parentRef) || self.spec.parentRef.name != self.metadata.name",
        "a Supervisor cannot be its own parent: name another one or leave parentRef out",
        ".spec.parentRef.name",
    ),
)


class Supervisor(WireModel):
    """Keeps one long-lived agent alive: runs it in a pod, hears its heartbeat, restarts it within a
    budget, and gives up loudly."""

    model_config = ConfigDict(json_schema_extra=NAME_RULES)

    api_version: str
    """APIVersion of this object."""
    kind: str
    """Kind of this object."""
    metadata: FreeForm
    """Standard object metadata."""
    spec: SupervisorSpec
    """What is wanted."""
    status: SupervisorStatus = Field(
        default_factory=SupervisorStatus,
        json_schema_extra={"default": {"observedGeneration": -1}},
    )
    """What is, written by the operator."""
