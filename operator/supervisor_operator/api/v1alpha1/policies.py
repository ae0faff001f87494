"""The choices a user makes by one word."""

from __future__ import annotations

from enum import StrEnum

from supervisor_operator.api.base import WireModel


class HeartbeatSource(StrEnum):
    FILE = "File"
    API = "API"
    NONE = "None"


class RestartPolicy(StrEnum):
    ON_FAILURE = "OnFailure"
    ALWAYS = "Always"
    NEVER = "Never"


class OnUnresponsive(StrEnum):
    RESTART = "Restart"
    MARK_ONLY = "MarkOnly"


class ExitAction(StrEnum):
    RESTART = "Restart"
    FAIL = "Fail"
    COMPLETE = "Complete"
    IGNORE = "Ignore"


class UpdateStrategyType(StrEnum):
    RECREATE = "Recreate"
    ON_DELETE = "OnDelete"


class ChildFailurePolicy(StrEnum):
    IGNORE = "Ignore"
    RESTART = "Restart"
    FAIL = "Fail"


class RestartStrategy(StrEnum):
    ONE_FOR_ONE = "OneForOne"
    ONE_FOR_ALL = "OneForAll"
    REST_FOR_ONE = "RestForOne"


class WhenSupervisorGone(StrEnum):
    STOP = "Stop"
    KEEP = "Keep"


class UpdateStrategy(WireModel):
    """When a changed template replaces the pod."""

    type: UpdateStrategyType = UpdateStrategyType.RECREATE
    """Recreate replaces the pod at once; OnDelete waits until somebody deletes it. Default Recreate."""
