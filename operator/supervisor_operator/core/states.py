"""The states a Supervisor can be in: one row per state says all that it shows.

`Ready`, `Reconciling` and `Stalled` follow kstatus, so that Flux, Argo CD and `kubectl wait` agree
with what people read.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique

from supervisor_operator.api.v1alpha1.meta import ConditionStatus, Health, Phase
from supervisor_operator.core.words import Reason

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN


@dataclass(frozen=True, slots=True)
class Row:
    """What a state shows.

    phase None: ACTIVE or SPAWNING, by whether the newest pod has shown life. A reason of None: the
    decision brings its own word.
    """

    phase: Phase | None
    health: Health
    ready: ConditionStatus
    reason: Reason | None
    reconciling: Reason | None = None
    stalled: bool = False
    succeeded: bool = False


@unique
class State(Enum):
    STARTING = Row(Phase.SPAWNING, Health.UNKNOWN, UNKNOWN, Reason.STARTING, Reason.STARTING)
    PENDING = Row(Phase.SPAWNING, Health.UNKNOWN, UNKNOWN, None, Reason.PENDING)
    PENDING_TOO_LONG = Row(
        Phase.SPAWNING, Health.UNKNOWN, UNKNOWN, None, Reason.PENDING, stalled=True
    )
    RUNNING = Row(Phase.ACTIVE, Health.HEALTHY, TRUE, None)
    UNRESPONSIVE = Row(None, Health.UNRESPONSIVE, FALSE, None, Reason.RESTARTING)
    MARKED = Row(None, Health.UNRESPONSIVE, FALSE, None, stalled=True)
    HELD = Row(None, Health.UNRESPONSIVE, FALSE, None, Reason.REMEDIATION_HELD)
    KILL_REFUSED = Row(None, Health.UNRESPONSIVE, FALSE, Reason.KILL_REFUSED, stalled=True)
    BACK_OFF = Row(Phase.SPAWNING, Health.UNKNOWN, FALSE, Reason.BACK_OFF, Reason.RESTARTING)
    WAITING_FOR_TEAM = Row(
        Phase.SPAWNING, Health.UNKNOWN, FALSE, Reason.WAITING_FOR_TEAM, Reason.WAITING_FOR_TEAM
    )
    BACK_OFF_HELD = Row(
        Phase.SPAWNING, Health.UNKNOWN, FALSE, Reason.BACK_OFF, Reason.REMEDIATION_HELD
    )
    RESTARTING = Row(Phase.SPAWNING, Health.UNKNOWN, UNKNOWN, Reason.RESTARTING, Reason.RESTARTING)
    UPDATING = Row(Phase.SPAWNING, Health.UNKNOWN, UNKNOWN, Reason.UPDATING, Reason.UPDATING)
    STUCK = Row(None, Health.UNKNOWN, FALSE, Reason.POD_STUCK, Reason.RESTARTING)
    TEMPLATE_REFUSED = Row(
        Phase.ACTIVE, Health.HEALTHY, FALSE, Reason.INVALID_TEMPLATE, stalled=True
    )
    CREATE_REFUSED = Row(None, Health.UNKNOWN, FALSE, Reason.CREATE_REFUSED, stalled=True)
    NAME_CONFLICT = Row(Phase.SPAWNING, Health.UNKNOWN, FALSE, Reason.NAME_CONFLICT, stalled=True)
    POLICY_MISSING = Row(Phase.SPAWNING, Health.UNKNOWN, FALSE, Reason.POLICY_MISSING, stalled=True)
    INVALID_SPEC = Row(None, Health.UNKNOWN, FALSE, Reason.INVALID_SPEC, stalled=True)
    FAILED = Row(Phase.FAILED, Health.UNKNOWN, FALSE, None, stalled=True)
    FINISHED = Row(Phase.TERMINATED, Health.UNKNOWN, TRUE, Reason.SUCCEEDED, succeeded=True)
    PAUSED = Row(Phase.PAUSED, Health.UNKNOWN, TRUE, Reason.PAUSED)
    PAUSED_DOWN = Row(Phase.PAUSED, Health.UNKNOWN, FALSE, Reason.AGENT_DOWN, stalled=True)
    STOPPING = Row(None, Health.UNKNOWN, UNKNOWN, Reason.STOPPING, Reason.STOPPING)
    STOPPED = Row(Phase.TERMINATED, Health.UNKNOWN, TRUE, Reason.STOPPED)
    NO_AGENT = Row(Phase.ACTIVE, Health.HEALTHY, TRUE, Reason.NO_CHILDREN)
    CHILDREN_STARTING = Row(
        Phase.SPAWNING, Health.UNKNOWN, UNKNOWN, Reason.CHILDREN_STARTING, Reason.CHILDREN_STARTING
    )
    CHILDREN_ACTIVE = Row(Phase.ACTIVE, Health.HEALTHY, TRUE, Reason.CHILDREN_HEALTHY)
    CHILDREN_DEGRADED = Row(Phase.ACTIVE, Health.UNKNOWN, FALSE, Reason.DEGRADED)
    CHILDREN_FAILED = Row(Phase.FAILED, Health.UNKNOWN, FALSE, Reason.CHILDREN_FAILED, stalled=True)
    CHILDREN_FINISHED = Row(
        Phase.TERMINATED, Health.UNKNOWN, TRUE, Reason.CHILDREN_FINISHED, succeeded=True
    )
    CHILDREN_PAUSED = Row(Phase.PAUSED, Health.UNKNOWN, TRUE, Reason.CHILDREN_PAUSED)
    CHILDREN_STOPPED = Row(Phase.TERMINATED, Health.UNKNOWN, TRUE, Reason.CHILDREN_STOPPED)
