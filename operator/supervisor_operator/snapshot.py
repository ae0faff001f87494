"""What the operator holds to be true, for others to read: one snapshot, and a stream of changes.

Fed by the passes themselves. A snapshot never changes and its version only grows; each event says
from which version on snapshots show it. So a reader subscribes, takes a snapshot, and skips events
up to its version; one that is too slow is told of a gap and takes a snapshot again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from supervisor_operator.api.v1alpha1.meta import Health, OperatingMode, Phase
from supervisor_operator.api.v1alpha1.supervisor_status import SupervisorStatus
from supervisor_operator.core.actions import Action
from supervisor_operator.core.observed import Observed
from supervisor_operator.core.plan import Plan
from supervisor_operator.core.words import ConditionType, Reason
from supervisor_operator.kube.cluster import Object
from supervisor_operator.queue import Key
from supervisor_operator.subscription import Gap, Subscription

MODES = {str(mode): mode for mode in OperatingMode}
WANTED_LEAVES = {Reason.UPDATING, Reason.RESTART_REQUESTED, Reason.STOPPING}
WANTED_PHASES = {Phase.PAUSED, Phase.TERMINATED}


class EventType(StrEnum):
    ADDED = "SupervisorAdded"
    REMOVED = "SupervisorRemoved"
    UPDATED = "SupervisorUpdated"
    CONNECTED = "SupervisorConnected"
    DISCONNECTED = "SupervisorDisconnected"
    STATE_CHANGED = "SupervisorStateChanged"
    COMPLETE = "ReconciliationComplete"
    FAILED = "ReconciliationFailed"


@dataclass(frozen=True, slots=True)
class Desired:
    mode: OperatingMode
    generation: int


@dataclass(frozen=True, slots=True)
class Actual:
    phase: Phase | None
    health: Health | None
    pod: str | None
    run: int
    restarts: int
    reason: str
    """Reason of the condition Ready."""


@dataclass(frozen=True, slots=True)
class LastAction:
    kind: str
    reason: str
    time: datetime


@dataclass(frozen=True, slots=True)
class Passes:
    """How many passes there were, and how the last of them went."""

    count: int
    time: datetime
    seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class SupervisorState:
    uid: str
    desired: Desired
    actual: Actual
    last_action: LastAction | None
    passes: Passes


@dataclass(frozen=True, slots=True)
class Snapshot:
    version: int
    supervisors: Mapping[Key, SupervisorState]


@dataclass(frozen=True, slots=True)
class Event:
    """`state` is the state from `version` on, the last one of a Supervisor that was removed."""

    type: EventType
    key: Key
    version: int
    state: SupervisorState | None
    error: str = ""


class SnapshotBoard:
    """An observer of passes; a pass costs the same however many Supervisors there are."""

    def __init__(self, wall: Callable[[], datetime]) -> None:
        self._wall = wall
        self._states: dict[Key, SupervisorState] = {}
        self._acted: dict[Key, LastAction] = {}
        self._phases: Counter[str] = Counter()
        self._healths: Counter[str] = Counter()
        self._version = 0
        self._taken = Snapshot(0, MappingProxyType({}))
        self._subscriptions: set[Subscription[Event]] = set()

    def snapshot(self) -> Snapshot:
        """The copy is made by whoever reads, and only where something has changed."""
        if self._taken.version != self._version:
            self._taken = Snapshot(self._version, MappingProxyType(dict(self._states)))
        return self._taken

    def subscribe(self, size: int = 256) -> Subscription[Event]:
        """Events from now on; at most `size` of them wait for the reader."""
        subscription = Subscription[Event](size, self._subscriptions.discard)
        self._subscriptions.add(subscription)
        return subscription

    def close(self) -> None:
        """There will be no more events."""
        for subscription in list(self._subscriptions):
            subscription.close()

    def phases(self) -> dict[str, float]:
        return dict(self._phases)

    def healths(self) -> dict[str, float]:
        return dict(self._healths)

    def acted(self, observed: Observed, action: Action) -> None:
        """An action was carried out; the pass it belongs to is not over yet."""
        key = (observed.namespace, observed.name)
        self._acted[key] = LastAction(type(action).__name__, action.reason, self._wall())

    def passed(self, item: Object, plan: Plan, seconds: float) -> None:
        metadata = item["metadata"]
        key = (metadata["namespace"], metadata["name"])
        known = self._states.get(key)
        if known and known.uid != metadata["uid"]:
            self._remove(key, known)
            known = None
        count = known.passes.count + 1 if known else 1
        state = SupervisorState(
            uid=metadata["uid"],
            desired=desired_of(item),
            actual=actual_of(plan.status),
            last_action=self._last_action(key, known),
            passes=Passes(count, self._wall(), seconds),
        )
        before = (known.actual.phase, known.actual.health) if known else _stored(item)
        self._put(key, known, state)
        for kind in changes(known, state, before):
            self._tell(kind, key, state)
        self._tell(EventType.COMPLETE, key, state)

    def failed(self, key: Key, error: Exception) -> None:
        known = self._states.get(key)
        if known is None:
            self._version += 1
            self._tell(EventType.FAILED, key, None, str(error))
            return
        passes = Passes(known.passes.count + 1, self._wall(), error=str(error))
        state = replace(known, passes=passes, last_action=self._last_action(key, known))
        self._put(key, known, state)
        self._tell(EventType.FAILED, key, state, str(error))

    def gone(self, key: Key) -> None:
        self._acted.pop(key, None)
        known = self._states.get(key)
        if known:
            self._remove(key, known)

    def _last_action(self, key: Key, known: SupervisorState | None) -> LastAction | None:
        return self._acted.pop(key, known.last_action if known else None)

    def _put(self, key: Key, known: SupervisorState | None, state: SupervisorState) -> None:
        self._version += 1
        self._states[key] = state
        self._count(known, -1)
        self._count(state, 1)

    def _remove(self, key: Key, known: SupervisorState) -> None:
        self._version += 1
        del self._states[key]
        self._count(known, -1)
        self._tell(EventType.REMOVED, key, known)

    def _count(self, state: SupervisorState | None, number: int) -> None:
        if state and state.actual.phase:
            self._phases[state.actual.phase] += number
        if state and state.actual.health:
            self._healths[state.actual.health] += number

    def _tell(
        self, kind: EventType, key: Key, state: SupervisorState | None, error: str = ""
    ) -> None:
        for subscription in self._subscriptions:
            subscription.push(Event(kind, key, self._version, state, error), Gap(self._version))


Words = tuple[str | None, str | None]
"""Phase and health."""


def changes(
    known: SupervisorState | None, state: SupervisorState, before: Words
) -> Iterator[EventType]:
    if known is None:
        yield EventType.ADDED
    elif known.desired != state.desired:
        yield EventType.UPDATED
    now = (state.actual.phase, state.actual.health)
    if before not in {now, (None, None)}:
        yield EventType.STATE_CHANGED
    if _is_connected(now) and not _is_connected(before):
        yield EventType.CONNECTED
    if _is_connected(before) and not _is_connected(now) and not _is_wanted(state.actual):
        yield EventType.DISCONNECTED


def _is_connected(words: Words) -> bool:
    phase, health = words
    return phase == Phase.ACTIVE and health != Health.UNRESPONSIVE


def _is_wanted(actual: Actual) -> bool:
    """Somebody asked for it: paused, stopped, finished, or about to be replaced."""
    return actual.phase in WANTED_PHASES or actual.reason in WANTED_LEAVES


def _stored(item: Object) -> Words:
    """What an operator before us wrote: a change since then is a change."""
    return item["status"].get("phase"), item["status"].get("health")


def desired_of(item: Object) -> Desired:
    """A word that is no mode belongs to an object that cannot be read, and wants nothing."""
    mode = MODES.get(str(item["spec"].get("operatingMode")), OperatingMode.RUNNING)
    return Desired(mode, item["metadata"].get("generation", 0))


def actual_of(status: SupervisorStatus) -> Actual:
    ready = (one.reason for one in status.conditions or () if one.type == ConditionType.READY)
    return Actual(
        phase=status.phase,
        health=status.health,
        pod=status.pod_name,
        run=status.run or 0,
        restarts=status.restarts or 0,
        reason=next(ready, ""),
    )
