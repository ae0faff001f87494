"""One pass over one Supervisor: observe, plan, apply, report. The only module that knows all four.

Every trigger leads here. The trigger is not looked at: what is, and what should be, decide.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from supervisor_operator.api.v1alpha1.meta import OperatingMode
from supervisor_operator.core.actions import Action, CreatePod
from supervisor_operator.core.decision import was_paused
from supervisor_operator.core.observed import (
    BeatColumn,
    Now,
    Observed,
    PodView,
    Refusal,
    RefusalKind,
)
from supervisor_operator.core.plan import Plan, plan_supervisor
from supervisor_operator.errors import NotFoundError, TransientError
from supervisor_operator.kube.apply import Applier
from supervisor_operator.kube.cluster import HEARTBEATS, SUPERVISORS, Cluster, Object
from supervisor_operator.kube.customs import Customs
from supervisor_operator.kube.observe import Surroundings, World, observe
from supervisor_operator.kube.report import Storyteller, dump_status, write_status
from supervisor_operator.queue import Key

REFUSED_AGAIN_SECONDS = {RefusalKind.KILL: 60.0}
LOOK_AGAIN_SECONDS = 1.0

_log = logging.getLogger(__name__)


class NotYetError(TransientError):
    """The stores do not show all of our own writes yet, or are not trusted: look again soon."""


class Observer(Protocol):
    """Is told how passes went: metrics now, the snapshot for others too."""

    def passed(self, item: Object, plan: Plan, seconds: float) -> None: ...

    def failed(self, key: Key, error: Exception) -> None: ...

    def gone(self, key: Key) -> None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """When to look again; `backs_off` asks the queue for a growing delay."""

    check_in: float | None = None
    backs_off: bool = False


@dataclass(frozen=True, slots=True)
class Clocks:
    mono: Callable[[], float]
    wall: Callable[[], datetime]

    def now(self) -> Now:
        return Now(self.mono(), self.wall())


@dataclass(frozen=True, slots=True)
class Parts:
    """What a pass works with; built once, in `wiring`."""

    cluster: Cluster
    supervisors: Customs
    world: World
    applier: Applier
    teller: Storyteller
    observer: Observer
    clocks: Clocks
    around: Callable[[], Surroundings]
    is_ready: Callable[[], bool]
    column: Callable[[Key, Object], BeatColumn]


class Reconciler:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._written: dict[Key, int] = {}

    async def reconcile(self, key: Key) -> Outcome:
        try:
            return await self._pass(key)
        except NotFoundError:
            # Most likely the Supervisor itself: kopf does not tell of all deletions.
            self._parts.supervisors.doubt()
            raise

    async def _pass(self, key: Key) -> Outcome:
        parts = self._parts
        item = parts.supervisors.get(key)
        if item is None or "deletionTimestamp" in item["metadata"]:
            # On its way out (foreground deletion): the garbage collector has the word.
            self._written.pop(key, None)
            parts.observer.gone(key)
            return Outcome()
        now = parts.clocks.now()
        observed = self._observe(key, item, now)
        plan = plan_supervisor(observed, now)
        if plan.confirm:
            observed = await self._confirm(key, item, observed, now)
            plan = plan_supervisor(observed, now)
        refusal = await self._apply(key, observed, plan.actions)
        if plan.actions:
            seen = replace(self._observe(key, item, now), refusal=refusal)
            plan = plan_supervisor(seen, now)
            if _wants_a_pod(plan):
                # The world moved on while we wrote: the next pass starts from what status says now.
                return Outcome(0)
        await self._report(item, plan)
        parts.observer.passed(item, plan, parts.clocks.mono() - now.mono)
        return _outcome(plan, refusal)

    def _observe(self, key: Key, item: Object, now: Now, *, confirmed: bool = False) -> Observed:
        parts = self._parts
        around = replace(parts.around(), beat_column=parts.column(key, item))
        observed = observe(parts.world, item, now, around, confirmed=confirmed)
        if observed.mode is OperatingMode.RUNNING and was_paused(observed.status):
            for pod in observed.pods:
                parts.world.beats.allow(pod.uid, now.mono)
            observed = observe(parts.world, item, now, around, confirmed=confirmed)
        return observed

    async def _confirm(self, key: Key, item: Object, observed: Observed, now: Now) -> Observed:
        """No verdict on our own view alone: read the Heartbeat of the newest pod."""
        newest = observed.pods[-1]
        try:
            found = await self._parts.cluster.get(HEARTBEATS, newest.namespace, newest.name)
        except NotFoundError:
            raise NotYetError(f"Heartbeat {newest.name} is gone: looking again") from None
        self._parts.world.beats.note("MODIFIED", found)
        return self._observe(key, item, now, confirmed=True)

    async def _apply(
        self, key: Key, observed: Observed, actions: tuple[Action, ...]
    ) -> Refusal | None:
        for action in actions:
            if isinstance(action, CreatePod):
                self._make_sure_all_is_seen(key)
                if action.believed_gone:
                    await self._make_sure_it_lives(observed)
            _log.info("%s", action.reason, extra={"object": _name(key)})
            refusal = await self._parts.applier.apply(observed, action)
            self._remember(key, observed)
            if refusal:
                return refusal
        return None

    def _make_sure_all_is_seen(self, key: Key) -> None:
        """Create only from a whole view: every store synced, every own write come back."""
        if not self._parts.is_ready():
            raise NotYetError("the stores are not whole yet")
        if self._parts.world.pods.revision(key[0]) < self._written.get(key, 0):
            raise NotYetError("our last write has not come back yet")

    async def _make_sure_it_lives(self, observed: Observed) -> None:
        """A pod that vanished unseen may have gone with its owner, and nobody told of either."""
        found = await self._parts.cluster.get(SUPERVISORS, observed.namespace, observed.name)
        if found["metadata"]["uid"] != observed.uid:
            raise NotFoundError(f"the Supervisor {observed.name} that we know of is gone")

    def _remember(self, key: Key, observed: Observed) -> None:
        versions = [int(pod.resource_version or 0) for pod in self._pods(observed)]
        self._written[key] = max([self._written.get(key, 0), *versions])

    def _pods(self, observed: Observed) -> tuple[PodView, ...]:
        return self._parts.world.pods.of(observed.uid)

    async def _report(self, item: Object, plan: Plan) -> None:
        parts = self._parts
        written = await write_status(parts.cluster, SUPERVISORS, item, dump_status(plan.status))
        if written is None:
            return
        parts.supervisors.put(written)
        await parts.teller.tell(item, plan.notes)


def _wants_a_pod(plan: Plan) -> bool:
    return any(isinstance(action, CreatePod) for action in plan.actions)


def _outcome(plan: Plan, refusal: Refusal | None) -> Outcome:
    if refusal and refusal.kind in REFUSED_AGAIN_SECONDS:
        return Outcome(REFUSED_AGAIN_SECONDS[refusal.kind])
    if refusal and refusal.kind is not RefusalKind.TEMPLATE:
        return Outcome(backs_off=True)
    if plan.actions:
        return Outcome(LOOK_AGAIN_SECONDS)
    return Outcome(plan.check_in)


def _name(key: Key) -> str:
    return f"Supervisor {key[0]}/{key[1]}"
