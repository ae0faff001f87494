"""Puts the operator together from its settings, and runs it while we lead."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress

import kopf

from supervisor_operator.clock import wall_clock
from supervisor_operator.errors import ClusterError, TransientError
from supervisor_operator.handlers import customs as customs_handlers
from supervisor_operator.handlers import hosting
from supervisor_operator.kube.apply import Applier
from supervisor_operator.kube.burst import Burst
from supervisor_operator.kube.cluster import SUPERVISORS, TEAMS, Cluster
from supervisor_operator.kube.column import ColumnBudget
from supervisor_operator.kube.customs import Customs
from supervisor_operator.kube.observe import Surroundings
from supervisor_operator.kube.report import Storyteller
from supervisor_operator.kube.rights import BeatRights
from supervisor_operator.kube.watches import Watches
from supervisor_operator.memory import keep_for_good
from supervisor_operator.observer import FanOut, MetricsObserver
from supervisor_operator.queue import Key, WorkQueue
from supervisor_operator.reconcile import Clocks, Outcome, Parts, Reconciler
from supervisor_operator.ripples import Ripples, team_key
from supervisor_operator.settings import Settings
from supervisor_operator.snapshot import SnapshotBoard
from supervisor_operator.team_reconcile import TeamParts, TeamReconciler
from supervisor_operator.telemetry.http import Probes
from supervisor_operator.telemetry.metrics import Metrics
from supervisor_operator.workers import Resync, work

STALL_SECONDS = 2.0
TICK_SECONDS = 0.5
FINISH_SECONDS = 1.5
SWEEP_AGAIN_SECONDS = 1.0

_log = logging.getLogger(__name__)


class Operator:
    """One term of leadership: stores, queue and workers, from start to stop.

    kopf is hosted here too, unless it hosts us: then `register` comes first.
    """

    def __init__(
        self, cluster: Cluster, settings: Settings, metrics: Metrics, probes: Probes
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._metrics = metrics
        self._clock = time.monotonic
        self._queue = WorkQueue(postpone=self._postpone)
        self._namespaces: tuple[str | None, ...] = settings.namespaces or (None,)
        self._supervisors = Customs(SUPERVISORS, self._on_supervisor)
        self._teams = Customs(TEAMS, self._on_team)
        self._ripples = Ripples(self._queue, self._supervisors, wall_clock, self._is_settled)
        self._rights = BeatRights(cluster)
        self._watches = Watches(
            cluster,
            self._namespaces,
            self._supervisors,
            self._teams,
            self._ripples.on_pod,
            clock=self._clock,
            on_beat=self._on_beat,
        )
        self._ripples.world = self._watches.world
        self.board = SnapshotBoard(wall_clock)
        self._counting = MetricsObserver(metrics)
        self._observer = FanOut(self._counting, self.board)
        teller = Storyteller(cluster, settings.identity, self._clock, wall_clock)
        self._reconciler = Reconciler(self._build_parts(teller))
        self._team_reconciler = TeamReconciler(self._build_team_parts(teller))
        self._resync = Resync(
            self._queue, self._keys, settings.resync_seconds, self._reconciler.is_still
        )
        self._whole = asyncio.Event()
        self._hosted = asyncio.Event()
        self._add_probes(probes)
        self._add_gauges()

    async def run(
        self,
        stop: asyncio.Event,
        *,
        hosts_kopf: bool = True,
        listen: Callable[[], None] = lambda: None,
    ) -> None:
        """Until `stop` is set; a part that dies before is raised.

        `listen` connects the process's signals with `stop`; it is called when kopf is up.
        """
        halt = asyncio.Event()
        workers = [asyncio.create_task(self._work()) for _ in range(self._settings.workers)]
        parts = [
            asyncio.create_task(part) for part in (*self._endless(), self._keep_signals(listen))
        ]
        # kopf ends every task that was started after it, so it comes last.
        kopfs = [asyncio.create_task(self._host_kopf(halt))] if hosts_kopf else []
        waiter = asyncio.create_task(stop.wait())
        tasks = [*workers, *parts, *kopfs]
        try:
            done, _ = await asyncio.wait({waiter, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            if kopfs and any(task.cancelled() for task in done):
                # kopf, on its way out, ends waits of ours before it says why.
                ended, late = await asyncio.wait(kopfs, timeout=FINISH_SECONDS)
                done = {*ended}
                if late:
                    raise TransientError("kopf ends, and takes its time: starting afresh")
            for task in done:
                task.result()
        finally:
            halt.set()
            self._queue.close()
            self._whole.set()  # workers that still wait for the start find the queue closed
            self.board.close()
            waiter.cancel()
            # Passes under way may finish; kopf would wait 5 s for tasks that are ours.
            await asyncio.wait(workers, timeout=FINISH_SECONDS)
            await _end(tasks)

    def register(self, registry: kopf.OperatorRegistry) -> None:
        """Let kopf log in as we do, and bring the custom objects."""
        kubeconfig = str(self._settings.kubeconfig) if self._settings.kubeconfig else None
        hosting.register_login(registry, kubeconfig)
        for customs in (self._supervisors, self._teams):
            customs_handlers.register(registry, customs)

    async def _host_kopf(self, halt: asyncio.Event) -> None:
        registry = kopf.OperatorRegistry()
        self.register(registry)
        await hosting.host(registry, self._settings.namespaces, halt, self._hosted)

    async def _keep_signals(self, listen: Callable[[], None]) -> None:
        """Take the signals back from kopf: it does not decide about our end."""
        await self._hosted.wait()
        listen()
        await asyncio.Event().wait()

    def _endless(self) -> Iterator[Coroutine[None, None, None]]:
        yield from (reflector.run() for _, reflector in self._watches.reflectors)
        yield self._sweep(self._supervisors)
        yield self._sweep(self._teams)
        yield self._look_for_policy()
        yield self._notice_stalls()
        yield self._become_whole()

    async def _become_whole(self) -> None:
        """Open the gate for the workers once every store has seen all there is."""
        await self._watches.wait_synced()
        await self._supervisors.wait_whole()
        await self._teams.wait_whole()
        keep_for_good()
        _log.info("all stores are synced: %d supervisors", len(self._supervisors))
        self._whole.set()
        await self._resync.run()

    async def _work(self) -> None:
        await self._whole.wait()
        await work(self._queue, self._reconcile, self._observer)

    async def _reconcile(self, key: Key) -> Outcome:
        if key[2:] == (TEAMS.kind,):
            begun = self._clock()
            outcome = await self._team_reconciler.reconcile(key[:2])
            self._counting.team_passed(self._clock() - begun)
            return outcome
        return await self._reconciler.reconcile(key)

    def _postpone(self, key: Key) -> float | None:
        return self._reconciler.moved_deadline(key)

    def _is_settled(self, key: Key) -> bool:
        return self._reconciler.is_settled(key)

    def _keys(self) -> list[Key]:
        return [*self._supervisors.keys(), *map(team_key, self._teams.keys())]

    async def _sweep(self, customs: Customs) -> None:
        seconds = 0.0
        while True:
            try:
                await customs.sweep_when_wanted(self._cluster, self._namespaces, seconds)
                seconds = self._settings.sweep_seconds
            except ClusterError as error:
                _log.warning("looking for missed deletions failed: %s", error)
                seconds = SWEEP_AGAIN_SECONDS

    async def _look_for_policy(self) -> None:
        while True:
            before = self._rights.policy_present
            with suppress(ClusterError):
                if await self._rights.look_for_policy():
                    await self._rights.heal()
            if before != self._rights.policy_present:
                self._resync.look_at_all()
            await asyncio.sleep(self._settings.resync_seconds)

    async def _notice_stalls(self) -> None:
        """A process that was stopped or starved heard nothing: that is a gap like any other."""
        last = self._clock()
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now = self._clock()
            if now - last > TICK_SECONDS + STALL_SECONDS:
                self._watches.on_gap(now - last)
            last = now

    def _on_supervisor(self, key: Key) -> None:
        self._ripples.on_supervisor(key)

    def _on_team(self, key: Key) -> None:
        self._ripples.on_team(key)

    def _on_beat(self, age: float) -> None:
        self._metrics.beats_total.inc()
        self._metrics.beat_age_seconds.observe(age)

    def _build_team_parts(self, teller: Storyteller) -> TeamParts:
        return TeamParts(
            cluster=self._cluster,
            items=self._teams,
            supervisors=self._supervisors,
            teams=self._watches.world.teams,
            teller=teller,
            clocks=Clocks(self._clock, wall_clock),
        )

    def _build_parts(self, teller: Storyteller) -> Parts:
        settings, world = self._settings, self._watches.world
        budget = ColumnBudget(
            settings.heartbeat_writes_per_second,
            lambda: len(world.beats),
            self._clock,
            wall_clock,
        )
        return Parts(
            cluster=self._cluster,
            supervisors=self._supervisors,
            world=world,
            applier=Applier(self._cluster, world.pods, world.beats, self._rights, self.board.acted),
            burst=Burst(self._clock),
            teller=teller,
            observer=self._observer,
            clocks=Clocks(self._clock, wall_clock),
            around=lambda: Surroundings(
                self._rights.policy_present, settings.relay_image, settings.node_grace_seconds
            ),
            is_ready=self._is_whole,
            is_expected=self._queue.is_expected,
            served=self._queue.served,
            column=budget,
        )

    def _is_whole(self) -> bool:
        customs = (self._supervisors, self._teams)
        return all(one.trusted for one in customs) and self._watches.are_synced()

    def _add_probes(self, probes: Probes) -> None:
        probes.add_liveness("resync", lambda: self._resync.stalled() if self._is_working else None)
        probes.add_readiness("watches", self._watches.unwell)
        probes.add_readiness(
            "supervisors",
            lambda: None if self._supervisors.trusted else "supervisors are being compared anew",
        )

    @property
    def _is_working(self) -> bool:
        return self._whole.is_set()

    def _add_gauges(self) -> None:
        metrics, queue = self._metrics, self._queue
        metrics.queue_depth.set_function(lambda: len(queue))
        metrics.queue_delayed.set_function(lambda: queue.delayed)
        metrics.queue_oldest_seconds.set_function(queue.oldest_age)
        metrics.watch_age_seconds.set_function(self._watches.ages)
        metrics.supervisors.set_function(self.board.phases)
        metrics.supervisors_health.set_function(self.board.healths)
        metrics.guard_active.set_function(
            lambda: {"storm": float(self._watches.world.storm.active)}
        )


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
