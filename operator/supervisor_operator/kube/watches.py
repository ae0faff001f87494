"""Pods and Heartbeats: what their changes do to the stores, and which key they order a pass for."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from supervisor_operator.core.observed import PodView
from supervisor_operator.core.pods import slim_pod, view_pod
from supervisor_operator.core.words import MANAGED_SELECTOR, Label
from supervisor_operator.kube.beats import BeatBook
from supervisor_operator.kube.cluster import HEARTBEATS, PODS, Cluster, Object, Resource
from supervisor_operator.kube.customs import Customs
from supervisor_operator.kube.family import Family
from supervisor_operator.kube.heartbeats import slim_heartbeat, view_heartbeat
from supervisor_operator.kube.observe import World
from supervisor_operator.kube.reflector import Reflector
from supervisor_operator.kube.specs import Specs
from supervisor_operator.kube.store import Store
from supervisor_operator.kube.storm import StormWatch
from supervisor_operator.kube.teams import Teams
from supervisor_operator.kube.times import PodTimes
from supervisor_operator.queue import Key

WATCH_SILENCE_SECONDS = 120.0
SLIM = {PODS: slim_pod, HEARTBEATS: slim_heartbeat}

_log = logging.getLogger(__name__)


class Watches:
    def __init__(  # noqa: PLR0913 - it connects all of them
        self,
        cluster: Cluster,
        namespaces: tuple[str | None, ...],
        supervisors: Customs,
        teams: Customs,
        order: Callable[[Key, bool], None],
        *,
        clock: Callable[[], float],
        on_beat: Callable[[float], None],
    ) -> None:
        beats = BeatBook(clock, on_beat)
        pods: Store[PodView] = Store(view_pod, lambda pod: pod.owner)
        family = Family(supervisors, pods)
        self.world = World(
            pods=pods,
            heartbeats=Store(view_heartbeat, lambda beat: beat.owner),
            beats=beats,
            times=PodTimes(clock),
            storm=StormWatch(beats.count, clock),
            family=family,
            teams=Teams(teams, supervisors, pods, family),
            specs=Specs(),
        )
        self._cluster = cluster
        self._supervisors = supervisors
        self._order = order
        self._clock = clock
        self.reflectors = [
            self._reflector(resource, store, namespace, on_change)
            for namespace in namespaces
            for resource, store, on_change in (
                (PODS, self.world.pods, self._on_pod),
                (HEARTBEATS, self.world.heartbeats, self._on_heartbeat),
            )
        ]

    async def wait_synced(self) -> None:
        """Until every store has taken its first LIST; from here on beats are seen to arrive."""
        for _, reflector in self.reflectors:
            await reflector.wait_synced()
        self.world.beats.live = True

    def are_synced(self) -> bool:
        return all(reflector.synced for _, reflector in self.reflectors)

    def ages(self) -> dict[str, float]:
        """Seconds since each resource was last heard of, the worst per resource."""
        found: dict[str, float] = {}
        for resource, reflector in self.reflectors:
            age = self._clock() - reflector.last_contact
            found[resource.plural] = max(age, found.get(resource.plural, 0.0))
        return found

    def unwell(self) -> str | None:
        """Why the view is not to be trusted; None when it is."""
        for resource, reflector in self.reflectors:
            if not reflector.synced:
                return f"{resource.plural} are not listed yet"
        for plural, age in self.ages().items():
            if age > WATCH_SILENCE_SECONDS:
                return f"nothing was heard of {plural} for {age:.0f} s"
        return None

    def on_gap(self, seconds: float) -> None:
        _log.warning("blind for %.1f s: all deadlines move by that", seconds)
        self.world.beats.shift(seconds)
        self.world.times.shift(seconds)

    def _reflector(
        self,
        resource: Resource,
        store: Store[Any],
        namespace: str | None,
        on_change: Callable[[str, Object], None],
    ) -> tuple[Resource, Reflector[Any]]:
        return resource, Reflector(
            self._cluster,
            resource,
            store,
            namespace=namespace,
            selector=MANAGED_SELECTOR,
            on_change=on_change,
            clock=self._clock,
            on_gap=self.on_gap,
            slim=SLIM[resource],
        )

    def _on_pod(self, kind: str, item: Object) -> None:
        metadata = item["metadata"]
        is_news = True
        if kind == "DELETED":
            self.world.beats.forget(metadata["uid"])
            self.world.times.forget(metadata["uid"])
        elif pod := self.world.pods.get((metadata["namespace"], metadata["name"])):
            is_news = self.world.times.note(pod)
        name = (metadata.get("labels") or {}).get(Label.SUPERVISOR)
        if name:
            self._order((metadata["namespace"], name), is_news)

    def _on_heartbeat(self, kind: str, item: Object) -> None:
        """A beat of a healthy agent moves a number and wakes nobody."""
        is_news = self.world.beats.note(kind, item)
        metadata = item["metadata"]
        if kind == "DELETED" and not self.world.pods.get((metadata["namespace"], metadata["name"])):
            self.world.beats.forget_name((metadata["namespace"], metadata["name"]))
        name = (metadata.get("labels") or {}).get(Label.SUPERVISOR)
        if not name or not is_news:
            return
        key = (metadata["namespace"], name)
        supervisor = self._supervisors.get(key)
        status = supervisor["status"] if supervisor else {}
        is_awaited = status.get("health") != "HEALTHY" and status.get("phase") != "PAUSED"
        if kind == "DELETED" or is_awaited:
            self._order(key, True)
