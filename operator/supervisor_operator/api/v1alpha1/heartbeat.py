"""Heartbeat: the live beat of one pod. The operator makes them, people only look."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, ConfigDict, Field

from supervisor_operator.api.base import FreeForm, Name, WireModel, cel, rules


class HeartbeatSpec(WireModel):
    """Whose beat this is; never changed."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            cel(
                "self == oldSelf", "a Heartbeat belongs to one pod for good: spec cannot be changed"
            )
        )
    )

    pod_uid: Annotated[str, Field(alias="podUID", min_length=1, max_length=64)]
    """UID of the pod that beats."""
    supervisor: Name
    """Supervisor of that pod."""
    interval_seconds: Annotated[int, Field(ge=1, le=86_400)]
    """Seconds between two beats."""


class HeartbeatStatus(WireModel):
    """The newest beat, written by the relay or the agent."""

    sequence: Annotated[int, Field(ge=0)] | None = None
    """Grows with each beat of the agent."""
    beat_age_millis: Annotated[int, Field(ge=0)] | None = None
    """Age of the beat when it was sent, in milliseconds of the sender's monotonic clock."""
    relay_time: AwareDatetime | None = None
    """When the relay last wrote; for people, never judged by."""
    beat_time: AwareDatetime | None = None
    """When the agent last beat; for people, never judged by."""
    metrics: FreeForm | None = None
    """Figures from the agent, at most 4 KiB."""
    busy_seconds: Annotated[int, Field(ge=0)] | None = None
    """How many seconds the agent expects to be silent."""
    problem: Annotated[str, Field(max_length=512)] | None = None
    """Why the relay could not read a beat."""


class Heartbeat(WireModel):
    """The live beat of one pod, named like it and owned by it."""

    api_version: str
    """APIVersion of this object."""
    kind: str
    """Kind of this object."""
    metadata: FreeForm
    """Standard object metadata."""
    spec: HeartbeatSpec
    """Whose beat this is."""
    status: HeartbeatStatus | None = None
    """The newest beat; absent before the first."""
