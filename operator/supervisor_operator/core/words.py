"""Every word that leaves the operator: labels, annotations, condition types, reasons."""

from __future__ import annotations

from enum import StrEnum

from supervisor_operator.api.v1alpha1.meta import RESERVED_PREFIX

MANAGER = "supervisor-operator"
MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_SELECTOR = f"{MANAGED_BY}={MANAGER}"


class Label(StrEnum):
    SUPERVISOR = f"{RESERVED_PREFIX}supervisor"
    RUN = f"{RESERVED_PREFIX}run"
    TEAM = f"{RESERVED_PREFIX}team"
    MEMBER = f"{RESERVED_PREFIX}member"


class Mark(StrEnum):
    """Annotations of an agent's pod: the write-ahead record of its run."""

    RESTARTS = f"{RESERVED_PREFIX}restarts"
    COUNTED = f"{RESERVED_PREFIX}restarts-counted"
    FORGIVEN = f"{RESERVED_PREFIX}forgiven-run"
    TEMPLATE = f"{RESERVED_PREFIX}template-hash"
    REQUEST = f"{RESERVED_PREFIX}restart-request"
    REASON = f"{RESERVED_PREFIX}reason"
    ORDER = f"{RESERVED_PREFIX}team-order"
    PARENT_ORDER = f"{RESERVED_PREFIX}parent-order"
    CONFIG = f"{RESERVED_PREFIX}config"
    ENDED_BY = f"{RESERVED_PREFIX}ended-by"


class ConditionType(StrEnum):
    READY = "Ready"
    UNRESPONSIVE = "Unresponsive"
    PAUSED = "Paused"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    SUCCEEDED = "Succeeded"
    PARENT_RESOLVED = "ParentResolved"
    CHILDREN_HEALTHY = "ChildrenHealthy"


class TeamCondition(StrEnum):
    READY = "Ready"
    DEGRADED = "Degraded"
    REMEDIATION_ALLOWED = "RemediationAllowed"
    SUPERVISOR_RESOLVED = "SupervisorResolved"
    MEMBERS_RESOLVED = "MembersResolved"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"


class Reason(StrEnum):
    """Reasons of conditions, outcomes and ended runs."""

    STARTING = "Starting"
    HEARTBEAT_FRESH = "HeartbeatFresh"
    POD_READY = "PodReady"
    HEARTBEATS_MISSED = "HeartbeatsMissed"
    STARTUP_TIMEOUT = "StartupTimeout"
    NODE_UNREACHABLE = "NodeUnreachable"
    RELAY_DOWN = "RelayDown"
    REMEDIATION_HELD = "RemediationHeld"
    NOT_JUDGED = "NotJudged"
    RESTARTING = "Restarting"
    RESTART_REQUESTED = "RestartRequested"
    UPDATING = "Updating"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    BACK_OFF = "BackOff"
    PENDING = "Pending"
    PROGRESS_DEADLINE = "ProgressDeadlineExceeded"
    PAUSED = "Paused"
    NOT_PAUSED = "NotPaused"
    AGENT_DOWN = "AgentDown"
    SUCCEEDED = "Succeeded"
    NO_CHILDREN = "NoChildren"
    CHILDREN_STARTING = "ChildrenStarting"
    CHILDREN_HEALTHY = "ChildrenHealthy"
    CHILDREN_FAILED = "ChildrenFailed"
    CHILDREN_FINISHED = "ChildrenFinished"
    CHILDREN_PAUSED = "ChildrenPaused"
    CHILDREN_STOPPED = "ChildrenStopped"
    CHILD_FAILED = "ChildFailed"
    DEGRADED = "Degraded"
    GROUP_RESTART = "GroupRestart"
    WAITING_FOR_TEAM = "WaitingForTeam"
    MEMBERS_HEALTHY = "MembersHealthy"
    MEMBERS_FAILED = "MembersFailed"
    WITHIN_LIMIT = "WithinLimit"
    TOO_MANY_UNHEALTHY = "TooManyUnhealthy"
    SUPERVISOR_GONE = "SupervisorGone"
    SUPERVISOR_NOT_FOUND = "SupervisorNotFound"
    SUPERVISOR_IS_MEMBER = "SupervisorIsMember"
    TEAM_EXHAUSTED = "TeamRestartBudgetExhausted"
    RESOLVED = "Resolved"
    NOT_FOUND = "NotFound"
    ALREADY_ASSIGNED = "AlreadyAssigned"
    REFUSED = "Refused"
    INVALID_SPEC = "InvalidSpec"
    INVALID_TEMPLATE = "InvalidTemplate"
    CREATE_REFUSED = "CreateRefused"
    NAME_CONFLICT = "NameConflict"
    KILL_REFUSED = "KillRefused"
    POLICY_MISSING = "PolicyMissing"
    POD_STUCK = "PodStuckTerminating"
    BUDGET_EXHAUSTED = "RestartBudgetExhausted"
    AGENT_EXITED = "AgentExited"
    EXIT_CODE_RULE = "ExitCodeRule"


class RunReason(StrEnum):
    """Why a run was started; stamped on its pod."""

    FIRST = "Spawned"
    STARTED = "Started"
    REQUESTED = "RestartRequested"
    TEMPLATE = "TemplateChanged"
    FAILED = "AgentFailed"
    UNRESPONSIVE = "Unresponsive"
    POD_LOST = "PodLost"
    GROUP = "GroupRestart"


class EndedBy(StrEnum):
    """Why the operator ended a pod; stamped on it before."""

    HEARTBEATS_MISSED = Reason.HEARTBEATS_MISSED
    STARTUP_TIMEOUT = Reason.STARTUP_TIMEOUT
    AGENT_EXITED = Reason.AGENT_EXITED


class EventReason(StrEnum):
    SPAWNED = "Spawned"
    STARTED = "Started"
    RESTARTED = "Restarted"
    ACTIVE = "Active"
    PAUSED = "Paused"
    RESUMED = "Resumed"
    STOPPED = "Stopped"
    FINISHED = "Finished"
    FAILED = "Failed"
    UNRESPONSIVE = "Unresponsive"
    RECOVERED = "Recovered"
    RESTART_SCHEDULED = "RestartScheduled"
    BUDGET_EXHAUSTED = "RestartBudgetExhausted"
    REMEDIATION_HELD = "RemediationHeld"
    FLEET_GUARD = "FleetGuard"
    TEMPLATE_REFUSED = "TemplateRefused"
    CHILD_FAILED = "ChildFailed"
    CHILD_ORDERED = "ChildOrdered"
    MEMBER_JOINED = "MemberJoined"
    MEMBER_LEFT = "MemberLeft"
    GROUP_RESTART = "GroupRestart"
