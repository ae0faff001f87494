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
from supervisor_operator.api.v1alpha1.policies import HeartbeatSource
from supervisor_operator.core.actions import Action, CreatePod
from supervisor_operator.core.decision import was_paused
from supervisor_operator.core.heartbeat import allowed_silence
from supervisor_operator.core.observed import (
    Now,
    Observed,
    PodView,
    Refusal,
    RefusalKind,
)
from supervisor_operator.core.plan import Plan, plan_supervisor
from supervisor_operator.core.states import State
from supervisor_operator.errors import NotFoundError, TransientError
from supervisor_operator.kube.apply import Applier
from supervisor_operator.kube.burst import Burst
from supervisor_operator.kube.cluster import HEARTBEATS, SUPERVISORS, Cluster, Object
from supervisor_operator.kube.column import ColumnBudget
from supervisor_operator.kube.customs import Customs
from supervisor_operator.kube.observe import Surroundings, World, by_run, observe
from supervisor_operator.kube.report import Storyteller, dump_status, write_status
from supervisor_operator.queue import Key

REFUSED_AGAIN_SECONDS = {RefusalKind.KILL: 60.0}
LOOK_AGAIN_SECONDS = 1.0
LOOK_EVERY = 10
AT_REST = {State.RUNNING, State.STARTING}

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
    burst: Burst
    teller: Storyteller
    observer: Observer
    clocks: Clocks
    around: Callable[[], Surroundings]
    is_ready: Callable[[], bool]
    is_expected: Callable[[Key], bool]
    served: Callable[[Key], None]
    column: ColumnBudget


@dataclass(slots=True)
class _Quiet:
    """What a pass read that found an agent well, or starting, and left nothing to do."""

    item: Object
    pods: tuple[PodView, ...]
    is_timed: bool
    allowance: float | None
    """The silence that beats alone allow, where nothing else sets a deadline."""
    spared: int


class Reconciler:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._written: dict[Key, int] = {}
        self._quiet: dict[Key, _Quiet] = {}

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
        if item is None or _is_going(item) or parts.world.teams.is_left_over(item):
            # On its way out, alone or with its team: the garbage collector has the word.
            self._written.pop(key, None)
            self._quiet.pop(key, None)
            parts.observer.gone(key)
            return Outcome()
        now = parts.clocks.now()
        observed = self._observe(item, now)
        plan = plan_supervisor(observed, now)
        if plan.confirm:
            observed = await self._confirm(item, observed, now)
            plan = plan_supervisor(observed, now)
        refusal = await self._apply(key, observed, plan.actions)
        acted = bool(plan.actions)
        if acted:
            observed = replace(self._observe(item, now), refusal=refusal)
        hold = self._hold(observed, plan)
        if acted and (hold is None or not _is_starting(observed)):
            plan = plan_supervisor(observed, now)
            if _wants_a_pod(plan):
                # The world moved on while we wrote: the next pass starts from what status says now.
                return Outcome(0)
            hold = self._hold(observed, plan)
        is_answered = hold is not None or not plan.actions
        if acted and is_answered and parts.supervisors.get(key) is item:
            parts.served(key)
        written = await self._write(item, plan) if hold is None else None
        outcome = _outcome(plan, refusal)
        if hold is not None:
            outcome = Outcome(min(hold, plan.check_in or hold))
        self._note_quiet(
            key, written or item, observed, plan, is_timed=outcome.check_in is not None
        )
        if written:
            await parts.teller.tell(item, plan.notes)
        parts.observer.passed(item, plan, parts.clocks.mono() - now.mono)
        return outcome

    def _hold(self, observed: Observed, plan: Plan) -> float | None:
        """How long its status may wait, and so the plan that would make one."""
        if not plan.can_wait or observed.refusal:
            return None
        return self._parts.burst.hold(observed.sightings.created)

    def is_still(self, key: Key) -> bool:
        """Whether a pass would find what the last one found, and that was nothing to do.

        A pass is a function of what it reads and of the time. The agent was at rest and stands
        alone, so it read the object and its pods, and those are the same; and what time may change
        has its deadline in the queue. Should that ever not be all, one look in ten is not spared.
        """
        last = self._unchanged(key)
        if last is None:
            return False
        last.spared += 1
        return (
            last.spared % LOOK_EVERY != 0
            and (not last.is_timed or self._parts.is_expected(key))
            and not self._parts.column.is_due(last.item)
        )

    def is_settled(self, key: Key) -> bool:
        """Whether the last pass left it at rest, alone, and as it is now: no news for its next.

        What else it read, its beats above all, orders a pass of its own where it matters.
        """
        return self._unchanged(key) is not None

    def moved_deadline(self, key: Key) -> float | None:
        """Seconds to the new deadline, where all that happened since the pass is a beat."""
        last = self._unchanged(key)
        if last is None or last.allowance is None:
            return None
        silence = self._parts.world.beats.silence(last.pods[-1].uid, self._parts.clocks.mono())
        if silence is None or silence >= last.allowance:
            return None
        return last.allowance - silence

    def _unchanged(self, key: Key) -> _Quiet | None:
        last = self._quiet.get(key)
        if last is None or self._parts.supervisors.get(key) is not last.item:
            return None
        pods = self._parts.world.pods.of(last.item["metadata"]["uid"])
        return last if by_run(pods) == last.pods else None

    def _note_quiet(
        self, key: Key, item: Object, observed: Observed, plan: Plan, *, is_timed: bool
    ) -> None:
        is_same = self._parts.supervisors.get(key) is item
        if not is_same or not is_at_rest(plan) or _has_company(observed):
            self._quiet.pop(key, None)
            return
        # They start from different numbers, so that not all are looked at in the same round.
        before = self._quiet.get(key)
        self._quiet[key] = _Quiet(
            item=item,
            pods=observed.pods,
            is_timed=is_timed,
            allowance=_allowance(observed, plan),
            spared=before.spared if before else hash(key) % LOOK_EVERY,
        )

    def _observe(self, item: Object, now: Now, *, confirmed: bool = False) -> Observed:
        parts = self._parts
        around = replace(parts.around(), beat_column=parts.column.column(item))
        observed = observe(parts.world, item, now, around, confirmed=confirmed)
        if observed.mode is OperatingMode.RUNNING and was_paused(observed.status):
            for pod in observed.pods:
                parts.world.beats.allow(pod.uid, now.mono)
            observed = observe(parts.world, item, now, around, confirmed=confirmed)
        return observed

    async def _confirm(self, item: Object, observed: Observed, now: Now) -> Observed:
        """No verdict on our own view alone: read the Heartbeat of the newest pod."""
        newest = observed.pods[-1]
        try:
            found = await self._parts.cluster.get(HEARTBEATS, newest.namespace, newest.name)
        except NotFoundError:
            raise NotYetError(f"Heartbeat {newest.name} is gone: looking again") from None
        self._parts.world.beats.note("MODIFIED", found)
        return self._observe(item, now, confirmed=True)

    async def _apply(
        self, key: Key, observed: Observed, actions: tuple[Action, ...]
    ) -> Refusal | None:
        for action in actions:
            if isinstance(action, CreatePod):
                self._make_sure_all_is_seen(key)
                if _has_lost_its_pod(observed):
                    await self._make_sure_it_lives(observed)
            _log.info("%s", action.reason, extra={"object": _name(key)})
            refusal = await self._parts.applier.apply(observed, action)
            self._remember(key, observed)
            if refusal:
                return refusal
            if isinstance(action, CreatePod):
                self._parts.burst.note()
        return None

    def _make_sure_all_is_seen(self, key: Key) -> None:
        """Create only from a whole view: every store synced, every own write come back."""
        if not self._parts.is_ready():
            raise NotYetError("the stores are not whole yet")
        if self._parts.world.pods.revision(key[0]) < self._written.get(key, 0):
            raise NotYetError("our last write has not come back yet")

    async def _make_sure_it_lives(self, observed: Observed) -> None:
        """Pods that are gone may have gone with their owner, and the news of that be late."""
        found = await self._parts.cluster.get(SUPERVISORS, observed.namespace, observed.name)
        metadata = found["metadata"]
        if metadata["uid"] != observed.uid or "deletionTimestamp" in metadata:
            raise NotFoundError(f"the Supervisor {observed.name} that we know of is gone")

    def _remember(self, key: Key, observed: Observed) -> None:
        pods = self._pods(observed)
        for pod in pods:
            self._parts.world.times.note(pod)  # their news has been taken into account here
        versions = [int(pod.resource_version or 0) for pod in pods]
        self._written[key] = max([self._written.get(key, 0), *versions])

    def _pods(self, observed: Observed) -> tuple[PodView, ...]:
        return self._parts.world.pods.of(observed.uid)

    async def _write(self, item: Object, plan: Plan) -> Object | None:
        """The object with the status we wrote; None where there was nothing to write."""
        parts = self._parts
        written = await write_status(parts.cluster, SUPERVISORS, item, dump_status(plan.status))
        return parts.supervisors.put(written) if written else None


def _is_going(item: Object) -> bool:
    return "deletionTimestamp" in item["metadata"]


def _has_lost_its_pod(observed: Observed) -> bool:
    """Of the newest run there is nothing left."""
    return (observed.status.run or 0) > max((pod.run for pod in observed.pods), default=0)


def _has_company(observed: Observed) -> bool:
    """Whether others have a say in what this one does."""
    tree = observed.tree
    return bool(
        observed.team or observed.teams or observed.spec.parent_ref or tree.children or tree.order
    )


def is_at_rest(plan: Plan) -> bool:
    """Whether only news or the time that `check_in` tells can make a next step."""
    return plan.state in AT_REST and not plan.actions and plan.check_in != 0


def _allowance(observed: Observed, plan: Plan) -> float | None:
    """None where the pod does not beat yet, or time also gives a spent budget back."""
    beats = observed.spec.heartbeat.source is not HeartbeatSource.NONE
    if plan.state is not State.RUNNING or not beats or plan.status.restarts_counted:
        return None
    return allowed_silence(observed.spec.heartbeat, None)


def _is_starting(observed: Observed) -> bool:
    return bool(observed.pods) and observed.pods[-1].starting


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
