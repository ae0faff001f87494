"""The custom objects as kopf reports them, without the ghosts that kopf cannot see.

kopf never tells of objects that were deleted across a re-list. So a metadata LIST is compared with
what is here: at the start, now and then, and whenever kopf lists anew (an event without a type).
Between such a re-list and that sweep the store is not trusted, and nothing may be created from it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from sys import intern

from supervisor_operator.core.pods import controller_of
from supervisor_operator.kube.cluster import Cluster, Object, Resource
from supervisor_operator.kube.compact import Blocks, compact
from supervisor_operator.queue import Key

AWAITED_SECONDS = 5.0
KEPT = (
    "name",
    "namespace",
    "uid",
    "generation",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "ownerReferences",
)


class Customs:
    """All objects of one custom kind, by (namespace, name)."""

    def __init__(self, resource: Resource, on_change: Callable[[Key], None]) -> None:
        self.resource = resource
        self._on_change = on_change
        self._items: dict[Key, Object] = {}
        self._blocks = Blocks()
        self._owned: dict[str, set[Key]] = {}
        self._awaited: dict[Key, str] = {}
        self._swept = False
        self._sweep_wanted = asyncio.Event()
        self._whole = asyncio.Event()

    def __len__(self) -> int:
        return len(self._items)

    @property
    def trusted(self) -> bool:
        """Whether what is here is what there is."""
        return self._swept and not self._awaited

    def get(self, key: Key) -> Object | None:
        return self._items.get(key)

    def owned_by(self, uid: str) -> tuple[Key, ...]:
        """Keys of the objects whose controlling owner has this uid."""
        return tuple(self._owned.get(uid, ()))

    def keys(self) -> tuple[Key, ...]:
        return tuple(self._items)

    def values(self) -> Iterator[Object]:
        return iter(self._items.values())

    def take(self, kind: str | None, item: Object) -> None:
        """Take an event of kopf's watch."""
        key = _key(item)
        if kind is None and self._whole.is_set():
            self.doubt()
        self._arrived(key)
        known = self._items.get(key)
        if known and _revision(known) > _revision(item):
            return
        if kind == "DELETED":
            self._drop(key)
        elif not known or _revision(known) != _revision(item):
            self._set(key, item)  # else it is what we know, mostly from the answer to our own write
        self._on_change(key)

    def _set(self, key: Key, item: Object) -> None:
        slim = self._slim(self._items.get(key), item)
        self._drop(key)
        self._items[key] = slim
        if owner := controller_of(item):
            self._owned.setdefault(owner, set()).add(key)

    def _slim(self, known: Object | None, item: Object) -> Object:
        """What is read of it; the spec that is known already where only the status is new."""
        metadata = item["metadata"]
        generation = metadata.get("generation")
        is_known = known is not None and generation == known["metadata"].get("generation")
        if known is not None and is_known and generation and _uid(known) == _uid(item):
            spec = known["spec"]
        else:
            spec = self._blocks.share(item.get("spec") or {})
        return {
            "apiVersion": intern(item["apiVersion"]),
            "kind": intern(item["kind"]),
            "metadata": compact({name: metadata[name] for name in KEPT if name in metadata}),
            "spec": spec,
            "status": compact(item.get("status") or {}),
        }

    def _drop(self, key: Key) -> None:
        known = self._items.pop(key, None)
        owner = controller_of(known) if known else ""
        if owner in self._owned:
            self._owned[owner].discard(key)
            if not self._owned[owner]:
                del self._owned[owner]

    def doubt(self) -> None:
        """Something here may be gone: compare at once, and until then nothing is created."""
        self._swept = False
        self._sweep_wanted.set()

    def put(self, item: Object) -> Object:
        """Take the answer to a write of our own; returns it as it is kept."""
        key = _key(item)
        known = self._items.get(key)
        is_same = known is not None and _uid(known) == _uid(item)
        if known and is_same and _revision(known) < _revision(item):
            self._set(key, item)
            return self._items[key]
        is_here = known is not None and is_same and _revision(known) == _revision(item)
        return known if known and is_here else item

    async def wait_whole(self) -> None:
        """Until, for the first time, everything that a LIST showed has come from kopf too."""
        await self._whole.wait()

    def _arrived(self, key: Key | None) -> None:
        if key is not None:
            self._awaited.pop(key, None)
        if self._swept and not self._awaited:
            self._whole.set()

    async def sweep_when_wanted(
        self, cluster: Cluster, namespaces: tuple[str | None, ...], seconds: float
    ) -> None:
        """One sweep: now where one is wanted, else after so many seconds.

        What is awaited may have been deleted before kopf could see it: then only another LIST
        tells, and soon.
        """
        wait = min(seconds, AWAITED_SECONDS) if self._awaited else seconds
        with suppress(TimeoutError):
            await asyncio.wait_for(self._sweep_wanted.wait(), wait)
        await self.sweep(cluster, namespaces)

    async def sweep(self, cluster: Cluster, namespaces: tuple[str | None, ...]) -> None:
        """Drop what is gone; note what is still to come from kopf."""
        self._sweep_wanted.clear()
        listings = [
            await cluster.list(self.resource, namespace, metadata_only=True)
            for namespace in namespaces
        ]
        revision = min(int(listing.revision) for listing in listings)
        there = {_key(item): _uid(item) for listing in listings for item in listing.items}
        for key, item in list(self._items.items()):
            if there.get(key) != _uid(item) and _revision(item) <= revision:
                self._drop(key)
                self._on_change(key)
        self._awaited = {key: uid for key, uid in there.items() if key not in self._items}
        self._swept = not self._sweep_wanted.is_set()
        self._arrived(None)


def _key(item: Object) -> Key:
    return intern(item["metadata"].get("namespace", "")), intern(item["metadata"]["name"])


def _uid(item: Object) -> str:
    uid: str = item["metadata"]["uid"]
    return uid


def _revision(item: Object) -> int:
    return int(item["metadata"]["resourceVersion"])
