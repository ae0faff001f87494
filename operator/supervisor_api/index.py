"""What the API knows: our three kinds, listed and watched with its own account."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from supervisor_api.feed import Feed
from supervisor_api.keeping import Kept, keep_supervisor, keep_team
from supervisor_api.rhythm import Rhythm, Stroke, run_of
from supervisor_operator.core.health.subject import Beat
from supervisor_operator.core.words import MANAGED_SELECTOR, Label
from supervisor_operator.kube.cluster import (
    HEARTBEATS,
    SUPERVISORS,
    TEAMS,
    Cluster,
    Object,
    Resource,
)
from supervisor_operator.kube.reflector import Reflector
from supervisor_operator.kube.store import Key, Store

SILENCE_SECONDS = 120.0


class Index:
    def __init__(
        self,
        cluster: Cluster,
        feed: Feed,
        namespaces: Iterable[str | None],
        *,
        clock: Callable[[], float],
        wall: Callable[[], datetime],
    ) -> None:
        self.feed = feed
        self.supervisors: Store[Kept] = Store(keep_supervisor, lambda kept: kept.uid)
        self.teams: Store[Kept] = Store(keep_team, lambda kept: kept.uid)
        self.beats: Store[Beat] = Store(self._keep_beat, lambda beat: beat.pod_uid)
        self.rhythm = Rhythm()
        self._cluster = cluster
        self._clock = clock
        self._wall = wall
        self._namespaces = frozenset(namespaces)
        self._reflectors = [
            self._reflector(resource, store, selector, on_change, namespace)
            for namespace in self._namespaces
            for resource, store, selector, on_change in (
                (SUPERVISORS, self.supervisors, "", self._on_supervisor),
                (TEAMS, self.teams, "", _ignore),
                (HEARTBEATS, self.beats, MANAGED_SELECTOR, self._on_beat),
            )
        ]

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _, reflector in self._reflectors:
                tasks.create_task(reflector.run())
            for _, reflector in self._reflectors:
                await reflector.wait_synced()
            self.feed.live = True

    def unwell(self) -> str | None:
        """Why what is here may not be what there is; None where it is."""
        for resource, reflector in self._reflectors:
            if not reflector.synced:
                return f"{resource.plural} are not listed yet"
            silence = self._clock() - reflector.last_contact
            if silence > SILENCE_SECONDS:
                return f"nothing was heard of {resource.plural} for {silence:.0f} s"
        return None

    def covers(self, namespace: str | None) -> bool:
        """Whether objects of this namespace would be here; of None all that are here."""
        return namespace is None or not self._namespaces.isdisjoint({None, namespace})

    def store_of(self, resource: Resource) -> Store[Kept]:
        return self.supervisors if resource is SUPERVISORS else self.teams

    def by_uid(self, resource: Resource, uid: str) -> Kept | None:
        return next(iter(self.store_of(resource).of(uid)), None)

    def put(self, resource: Resource, item: Object) -> Kept:
        """Take the answer to a caller's write, so that the next read shows it."""
        store, metadata = self.store_of(resource), item["metadata"]
        key: Key = (metadata["namespace"], metadata["name"])
        if self.covers(key[0]):  # nobody would ever tell us of its end
            store.put(item)
        kept = store.get(key)
        if kept and kept.uid == metadata["uid"]:
            if resource is SUPERVISORS:
                self.feed.put(kept)
            return kept
        return keep_supervisor(item) if resource is SUPERVISORS else keep_team(item)

    def _keep_beat(self, item: Object) -> Beat:
        return Beat.of(item, self._wall() if self.feed.live else None)

    def _on_supervisor(self, _kind: str, item: Object) -> None:
        key = (item["metadata"]["namespace"], item["metadata"]["name"])
        kept = self.supervisors.get(key)
        if kept is None:
            self.feed.drop(key)
            self.rhythm.drop(key)
        else:
            self.feed.put(kept)

    def _on_beat(self, _kind: str, item: Object) -> None:
        metadata = item["metadata"]
        namespace, pod = metadata["namespace"], metadata["name"]
        beat = self.beats.get((namespace, pod))
        if beat and beat.time:
            agent = (metadata.get("labels") or {}).get(Label.SUPERVISOR, "")
            stroke = Stroke(beat.time, run_of(pod))
            self.rhythm.put((namespace, agent), stroke, item["status"].get("sequence") or 0)

    def _reflector(
        self,
        resource: Resource,
        store: Store[Any],
        selector: str,
        on_change: Callable[[str, Object], None],
        namespace: str | None,
    ) -> tuple[Resource, Reflector[Any]]:
        return resource, Reflector(
            self._cluster,
            resource,
            store,
            namespace=namespace,
            selector=selector,
            on_change=on_change,
            clock=self._clock,
        )


def _ignore(_kind: str, _item: Object) -> None:
    pass
