"""Keeps a store equal to the cluster: one LIST, then a WATCH from its revision, for ever.

Objects deleted while nobody looked are noticed by the next LIST. A watch that ended goes on from
the last revision; a forgotten revision (410) means a new LIST; every failure waits longer than the
one before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

from supervisor_operator.backoff import backoff
from supervisor_operator.errors import ClusterError, TransientError
from supervisor_operator.kube.cluster import Cluster, Object, Resource, Slim, as_it_is
from supervisor_operator.kube.store import Store

T = TypeVar("T")
OnChange = Callable[[str, Object], None]
"""Is told ADDED, MODIFIED or DELETED and the object, after the store was updated.

Of an object that a LIST showed to be gone only its identity and labels are left to tell.
"""
OnGap = Callable[[float], None]

_log = logging.getLogger(__name__)
_SHORTEST_GAP = 10.0
_SHORTEST_WATCH = 1.0
_RETRY_BASE = 0.5
_RETRY_CAP = 30.0


def _ignore_gap(_seconds: float) -> None:
    pass


class Reflector(Generic[T]):
    """List and watch of one resource, in one namespace or (None) in all.

    `last_contact`: when the API server last answered or sent a line, bookmarks included.
    `gap`: length of the last time without contact that ended a failure and exceeded 10 s; a quiet
    but healthy watch is no gap. `on_gap` is told before the events that were missed.
    """

    def __init__(  # noqa: PLR0913 - each is a part of the one thing it connects
        self,
        cluster: Cluster,
        resource: Resource,
        store: Store[T],
        *,
        namespace: str | None,
        selector: str,
        on_change: OnChange,
        clock: Callable[[], float],
        on_gap: OnGap = _ignore_gap,
        slim: Slim = as_it_is,
    ) -> None:
        self.gap = 0.0
        self.last_contact = clock()
        self._cluster = cluster
        self._resource = resource
        self._store = store
        self._namespace = namespace
        self._selector = selector
        self._on_change = on_change
        self._on_gap = on_gap
        self._clock = clock
        self._slim = slim
        self._synced = asyncio.Event()
        self._revision: str | None = None
        self._failures = 0
        self._lost = False

    @property
    def synced(self) -> bool:
        """Whether a consistent LIST has been taken once."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def run(self) -> None:
        while True:
            try:
                await self._follow()
            except ClusterError as error:
                if not isinstance(error, TransientError):  # 410 above all
                    self._revision = None
                await self._pause(error)

    async def _follow(self) -> None:
        """One watch, from the last revision or from a new LIST."""
        if self._revision is None:
            self._revision = await self._list()
        watch = self._cluster.watch(
            self._resource, self._namespace, self._revision, selector=self._selector
        )
        started = self._clock()
        async with watch as events:
            self._touch()
            await self._take(events)
        if self._clock() - started < _SHORTEST_WATCH:
            raise TransientError("the watch ended as soon as it began")
        self._failures = 0

    async def _list(self) -> str:
        found = await self._cluster.list(
            self._resource, self._namespace, selector=self._selector, slim=self._slim
        )
        self._touch()
        changes = self._store.replace(self._namespace, found)
        self._synced.set()
        for kind, item in changes:
            self._on_change(kind, item)
        return found.revision

    async def _take(self, events: AsyncIterator[Object]) -> None:
        async for event in events:
            kind, item = event["type"], event["object"]
            self._touch()
            self._failures = 0
            self._revision = item["metadata"]["resourceVersion"]
            if self._store.apply(self._namespace, kind, item):
                self._on_change(kind, item)

    def _touch(self) -> None:
        now = self._clock()
        gap, self.last_contact = now - self.last_contact, now
        was_lost, self._lost = self._lost, False
        if was_lost and gap > _SHORTEST_GAP:
            self.gap = gap
            self._on_gap(gap)

    async def _pause(self, error: ClusterError) -> None:
        self._failures += 1
        self._lost = True
        where = self._namespace or "all namespaces"
        delay = backoff(
            self._failures,
            base=_RETRY_BASE,
            cap=_RETRY_CAP,
            seed=(self._resource.plural, self._namespace),
        )
        delay = max(delay, error.retry_after or 0.0)
        _log.warning(
            "watch of %s in %s: %s; again in %.1f s", self._resource.plural, where, error, delay
        )
        await asyncio.sleep(delay)
