"""The agent's own blocks: how it runs, how it beats, how it is restarted."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from supervisor_operator.api.base import (
    LIST_SET,
    FreeForm,
    StringMap,
    WireModel,
    cel,
    list_map,
    rules,
)
from supervisor_operator.api.v1alpha1.meta import RESERVED_PREFIX
from supervisor_operator.api.v1alpha1.policies import (
    ExitAction,
    HeartbeatSource,
    OnUnresponsive,
    RestartPolicy,
)

SHORT_FORM_ONLY = ("command", "args", "env", "envFrom", "resources", "workingDir")


class EnvVar(WireModel):
    """One environment variable, as in a pod."""

    name: Annotated[str, Field(min_length=1, max_length=256)]
    """Name of the variable."""
    value: Annotated[str, Field(max_length=32_768)] | None = None
    """Its value; absent with valueFrom."""
    value_from: FreeForm | None = None
    """Source of the value, as in a pod: fieldRef, resourceFieldRef, configMapKeyRef or secretKeyRef."""


def _reserved(kind: str) -> dict[str, str]:
    return cel(
        f"!has(self.{kind}) || self.{kind}.all(k, !k.startsWith('{RESERVED_PREFIX}'))",
        f"{kind} that begin with {RESERVED_PREFIX} are reserved for the operator: choose another prefix",
        f".{kind}",
    )


class TemplateMetadata(WireModel):
    """Labels and annotations for the agent's pod."""

    model_config = ConfigDict(
        json_schema_extra=rules(_reserved("labels"), _reserved("annotations"))
    )

    labels: StringMap | None = None
    """Labels of the pod; the prefix supervision.dev/ is reserved."""
    annotations: StringMap | None = None
    """Annotations of the pod; the prefix supervision.dev/ is reserved."""


class PodTemplate(WireModel):
    """A whole pod, for agents that need more than one container or a volume."""

    metadata: TemplateMetadata | None = None
    """Labels and annotations of the pod."""
    spec: FreeForm
    """The pod's spec. The agent is the container called agent, else the first; restartPolicy is unset or Never."""


class AgentSpec(WireModel):
    """How the agent runs: the short form with image, or a pod template."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            cel(
                "has(self.image) != has(self.template)",
                "set exactly one of image (one container) and template (a whole pod)",
            ),
            cel(
                "!has(self.template) || !("
                + " || ".join(f"has(self.{name})" for name in SHORT_FORM_ONLY)
                + ")",
                ", ".join(SHORT_FORM_ONLY)
                + " go with image: with template set them in its container",
            ),
        )
    )

    image: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    """Image of the one container called agent."""
    command: Annotated[list[str], Field(max_length=64)] | None = None
    """Entrypoint; absent: the image's own."""
    args: Annotated[list[str], Field(max_length=256)] | None = None
    """Arguments of the entrypoint."""
    env: (
        Annotated[list[EnvVar], Field(max_length=256, json_schema_extra=list_map("name"))] | None
    ) = None
    """Environment variables."""
    env_from: Annotated[list[FreeForm], Field(max_length=32)] | None = None
    """Sources of many variables, as in a pod: configMapRef or secretRef."""
    resources: FreeForm | None = None
    """Requests and limits, as in a pod."""
    working_dir: Annotated[str, Field(max_length=1024)] | None = None
    """Working directory; absent: the image's own."""
    termination_grace_period_seconds: Annotated[int, Field(ge=0, le=3600)] = 10
    """Seconds between SIGTERM and SIGKILL in the short form; a template carries its own. Default 10."""
    template: PodTemplate | None = None
    """A pod template in place of image."""


class HeartbeatPolicy(WireModel):
    """When an agent counts as alive. UNRESPONSIVE falls at a silence of (missedThreshold + 1) times
    intervalSeconds, 120 seconds by default."""

    source: HeartbeatSource = HeartbeatSource.FILE
    """File: the agent rewrites a file and an injected relay reports it. API: the agent patches its own
    Heartbeat. None: only the pod's state counts. Default File."""
    interval_seconds: Annotated[int, Field(ge=1, le=86_400)] = 30
    """Seconds between two beats. Default 30."""
    missed_threshold: Annotated[int, Field(ge=0, le=1000)] = 3
    """Beats that may be missed; one more is UNRESPONSIVE. Default 3."""
    startup_seconds: Annotated[int, Field(ge=1, le=86_400)] = 120
    """Seconds from the container's start to the first beat. Default 120."""
    file: Annotated[str, Field(max_length=1024, pattern=r"^/.*[^/]$")] = (
        "/var/run/supervision/heartbeat.json"
    )
    """Absolute path of the heartbeat file. JSON {"unix_ts", "metrics"?, "busy_seconds"?}, or any
    content with a fresh modification time. Default /var/run/supervision/heartbeat.json."""
    max_busy_seconds: Annotated[int, Field(ge=0, le=604_800)] = 0
    """How many seconds a beat's busy_seconds may extend the deadline. Default 0."""


class ExitCodeRule(WireModel):
    """What an exit code means."""

    codes: Annotated[
        list[Annotated[int, Field(ge=0, le=255)]],
        Field(min_length=1, max_length=32, json_schema_extra=LIST_SET),
    ]
    """Exit codes, 0 to 255."""
    action: ExitAction
    """Restart counts and restarts, Fail gives up, Complete counts as finished, Ignore restarts uncounted."""


NO_CODE_TWICE = cel(
    "self.all(r, r.codes.all(c, self.exists_one(o, c in o.codes)))",
    "an exit code is listed in two rules: keep it in one",
)


class RestartPolicySpec(WireModel):
    """The restart budget."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            cel(
                "!has(self.maxDelaySeconds) || !has(self.delaySeconds) || self.maxDelaySeconds >= self.delaySeconds",
                "maxDelaySeconds must be at least delaySeconds: raise it or lower delaySeconds",
                ".maxDelaySeconds",
            )
        )
    )

    policy: RestartPolicy = RestartPolicy.ON_FAILURE
    """OnFailure: exit 0 is finished. Always: exit 0 is restarted too. Never: no restart. Default OnFailure."""
    max_restarts: Annotated[int, Field(ge=0, le=1000)] = 3
    """Counted restarts before giving up. Default 3."""
    delay_seconds: Annotated[int, Field(ge=1, le=86_400)] = 5
    """Seconds before the first restart; doubles each time. Default 5."""
    max_delay_seconds: Annotated[int, Field(ge=1, le=86_400)] = 300
    """Longest delay in seconds. Default 300."""
    reset_after_seconds: Annotated[int, Field(ge=1, le=604_800)] = 600
    """Seconds of good health after which the counter is 0 again. Default 600."""
    on_unresponsive: OnUnresponsive = OnUnresponsive.RESTART
    """Restart an unresponsive agent, or MarkOnly. Default Restart."""
    keep_finished_pods: Annotated[int, Field(ge=0, le=5)] = 1
    """Ended pods kept to be read (kubectl logs NAME-r3), 0 to 5. Default 1."""
    exit_codes: (
        Annotated[list[ExitCodeRule], Field(max_length=8, json_schema_extra=rules(NO_CODE_TWICE))]
        | None
    ) = None
    """Rules for single exit codes; the first that matches wins."""


class AgentDefaults(WireModel):
    """Blocks that fill absent blocks of team members, whole and unmerged."""

    agent: AgentSpec | None = None
    """Agent of members that have none."""
    heartbeat: HeartbeatPolicy | None = None
    """Heartbeat block of members that have none."""
    restart: RestartPolicySpec | None = None
    """Restart block of members that have none."""


__all__ = [
    "AgentDefaults",
    "AgentSpec",
    "EnvVar",
    "ExitCodeRule",
    "HeartbeatPolicy",
    "PodTemplate",
    "RestartPolicySpec",
    "TemplateMetadata",
]
