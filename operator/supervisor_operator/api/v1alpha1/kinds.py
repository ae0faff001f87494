"""The three kinds as the API server knows them: names, columns, selectable fields."""

from __future__ import annotations

from dataclasses import dataclass

from supervisor_operator.api.base import WireModel
from supervisor_operator.api.v1alpha1.heartbeat import Heartbeat
from supervisor_operator.api.v1alpha1.supervisor import Supervisor
from supervisor_operator.api.v1alpha1.team import SupervisorTeam


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; wide ones show with -o wide."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    model: type[WireModel]
    plural: str
    short_name: str
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.model.__name__


AGE = Column("Age", ".metadata.creationTimestamp", "date")

SUPERVISOR = Kind(
    Supervisor,
    "supervisors",
    "sup",
    (
        Column("Phase", ".status.phase"),
        Column("Health", ".status.health"),
        Column("Reason", '.status.conditions[?(@.type=="Ready")].reason'),
        Column("Restarts", ".status.restartSummary"),
        Column("Heartbeat", ".status.lastHeartbeatTime", "date"),
        AGE,
        Column("Mode", ".spec.operatingMode", wide=True),
        Column("Missed", ".status.missedHeartbeats", "integer", wide=True),
        Column("Pod", ".status.podName", wide=True),
        Column("Node", ".status.nodeName", wide=True),
        Column("Team", ".status.memberOf.team", wide=True),
        Column("Parent", ".spec.parentRef.name", wide=True),
    ),
    (".status.phase", ".status.health", ".spec.parentRef.name"),
)

TEAM = Kind(
    SupervisorTeam,
    "supervisorteams",
    "supteam",
    (
        Column("Supervisor", ".spec.supervisorRef.name"),
        Column("Phase", ".status.phase"),
        Column("Members", ".status.memberCount", "integer"),
        Column("Ready", ".status.readySummary"),
        Column("Unresponsive", ".status.unresponsive", "integer"),
        AGE,
        Column("Strategy", ".spec.restartStrategy", wide=True),
        Column("Lead", ".status.lead", wide=True),
        Column("Objective", ".spec.objective", wide=True),
    ),
    (".spec.supervisorRef.name",),
)

HEARTBEAT = Kind(
    Heartbeat,
    "heartbeats",
    "hb",
    (
        Column("Supervisor", ".spec.supervisor"),
        Column("Beat", ".status.beatTime", "date"),
        Column("Relay", ".status.relayTime", "date"),
        Column("Problem", ".status.problem"),
        AGE,
    ),
)

KINDS = (SUPERVISOR, TEAM, HEARTBEAT)
