"""What one pass looks at: frozen, complete, and free of anything that could change under it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from supervisor_operator.api.v1alpha1.meta import OperatingMode
from supervisor_operator.api.v1alpha1.supervisor import SupervisorSpec
from supervisor_operator.api.v1alpha1.supervisor_status import LedTeam, SupervisorStatus
from supervisor_operator.core.link import TeamLink
from supervisor_operator.core.tree import TreeView


@dataclass(frozen=True, slots=True)
class Now:
    """Read once per pass: `mono` judges silence, `wall` is for what must survive a restart."""

    mono: float
    wall: datetime

    @property
    def second(self) -> datetime:
        """The wall clock as conditions show it."""
        return self.wall.replace(microsecond=0)

    def after(self, seconds: float) -> datetime:
        """A time to come, to the millisecond."""
        due = self.wall + timedelta(seconds=seconds)
        return due.replace(microsecond=due.microsecond // 1000 * 1000)


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """How the agent's container ended."""

    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    message: str = ""
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PodView:
    """The fields of a pod that decisions read; nothing else of it is kept in memory."""

    name: str
    namespace: str
    uid: str
    owner: str
    run: int
    resource_version: str = ""
    restarts: int = 0
    counted: int = 0
    forgiven: int = 0
    template_hash: str = ""
    request: str = ""
    order: int = 0
    parent_order: int = 0
    run_reason: str = ""
    ended_by: str = ""
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    terminating: bool = False
    disrupted: bool = False
    ready: bool = False
    node: str = ""
    started_at: datetime | None = None
    running: bool = False
    others_running: bool = False
    relay_running: bool = True
    node_lost: bool = False
    end: AgentEnd | None = None
    waiting: str = ""
    waiting_message: str = ""
    grace_seconds: int = 30

    @property
    def finished(self) -> bool:
        """Ended for good: the kubelet runs nothing of it any more."""
        return self.phase in {"Succeeded", "Failed"}

    @property
    def starting(self) -> bool:
        """Nothing of it runs yet, and nothing is known to be in its way."""
        return not (self.running or self.finished or self.waiting)

    def is_news_after(self, before: PodView | None) -> bool:
        """Whether a pass that saw `before` could come to another end now.

        Revisions decide nothing, and a starting pod's node is told with whatever comes next.
        """
        if before is None:
            return True
        node = self.node if self.starting else before.node
        return self != replace(before, resource_version=self.resource_version, node=node)


@dataclass(frozen=True, slots=True)
class Sightings:
    """Seconds since this operator first saw a fact of the newest pod; None: not seen."""

    created: float = 0.0
    running: float | None = None
    terminating: float | None = None
    ended_by: float | None = None


@dataclass(frozen=True, slots=True)
class BeatView:
    """What is known of the newest pod's beats, as ages at the moment of the pass.

    `silence` is None before the first beat, `relay_silence` before the relay's first word.
    `confirmed` means that the Heartbeat was read from the server in this very pass, `first_hand`
    that this operator saw the newest beat arrive and did not just find it at its start.
    """

    silence: float | None = None
    relay_silence: float | None = None
    busy_seconds: float = 0.0
    confirmed: bool = False
    first_hand: bool = True
    missing: bool = False
    """The Heartbeat object was there and is gone: it is made again and silence starts from 0."""
    metrics: dict[str, object] | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class BeatLeftover:
    """The Heartbeat of a pod that is finished."""

    name: str
    uid: str


class BeatColumn(StrEnum):
    """What becomes of status.lastHeartbeatTime in this pass where nothing else changes."""

    KEEP = "keep"
    REFRESH = "refresh"
    OMIT = "omit"


class RefusalKind(StrEnum):
    """What the API server would not do, by the answer it calls for."""

    TEMPLATE = "template"
    CREATE = "create"
    CONFLICT = "conflict"
    KILL = "kill"
    RIGHTS = "rights"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal met in this pass; the pass is planned once more with it in view."""

    kind: RefusalKind
    message: str


@dataclass(frozen=True, slots=True)
class Observed:
    """One Supervisor and all that belongs to it."""

    name: str
    namespace: str
    uid: str
    generation: int
    spec: SupervisorSpec
    status: SupervisorStatus
    mode: OperatingMode
    template_hash: str
    """Of the spec: what the pod that it asks for is marked with."""
    pods: tuple[PodView, ...] = ()
    sightings: Sightings = field(default_factory=Sightings)
    beat: BeatView | None = None
    """None: there is no Heartbeat object for the newest pod."""
    beat_leftovers: tuple[BeatLeftover, ...] = ()
    refusal: Refusal | None = None
    policy_present: bool = True
    storm: bool = False
    node_grace_seconds: float = 60.0
    relay_image: str = ""
    beat_column: BeatColumn = BeatColumn.KEEP
    team: TeamLink | None = None
    teams: tuple[LedTeam, ...] = ()
    """Teams that name this Supervisor in supervisorRef."""
    tree: TreeView = field(default_factory=TreeView)
    invalid: str = ""
    """Why the models refuse the stored object; spec then holds defaults only."""
