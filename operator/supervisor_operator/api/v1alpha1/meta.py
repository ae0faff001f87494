"""Words and small models that all three kinds use."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field

from supervisor_operator.api.base import Name, WireModel, list_map

GROUP = "supervision.dev"
VERSION = "v1alpha1"
RESERVED_PREFIX = f"{GROUP}/"
MAX_NAME = 52


class OperatingMode(StrEnum):
    RUNNING = "Running"
    PAUSED = "Paused"
    STOPPED = "Stopped"


class Phase(StrEnum):
    SPAWNING = "SPAWNING"
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    TERMINATED = "TERMINATED"


class Health(StrEnum):
    HEALTHY = "HEALTHY"
    UNRESPONSIVE = "UNRESPONSIVE"
    UNKNOWN = "UNKNOWN"


class ConditionStatus(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class NameRef(WireModel):
    """A Supervisor of the same namespace, by name."""

    name: Name
    """Name of the Supervisor, in this namespace."""


class Condition(WireModel):
    """One observation in the usual Kubernetes shape."""

    type: Annotated[str, Field(max_length=64)]
    """What is observed, for example Ready."""
    status: ConditionStatus
    """True, False or Unknown."""
    reason: Annotated[str, Field(max_length=128)] = ""
    """Cause as one CamelCase word."""
    message: Annotated[str, Field(max_length=4096)] = ""
    """Cause and next step, for people."""
    last_transition_time: AwareDatetime | None = None
    """When status last changed."""
    observed_generation: int | None = None
    """metadata.generation this was computed from."""


Conditions = Annotated[list[Condition], Field(max_length=16, json_schema_extra=list_map("type"))]
