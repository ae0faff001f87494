"""What the operator knows of one kind: a kept value per object, found by name or by owner.

Filled by one or more reflectors, each for its own scope (a namespace, or None for all), and by the
answers to our own writes. resourceVersions are compared as numbers across incarnations too: all
objects of a kind are counted by the same clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from sys import intern
from typing import Generic, TypeVar

from supervisor_operator.kube.cluster import Listing, Object
from supervisor_operator.kube.compact import compact

T = TypeVar("T")
Key = tuple[str, str]
"""Namespace and name."""
Change = tuple[str, Object]
"""ADDED, MODIFIED or DELETED, and the object."""


@dataclass(slots=True)
class _Entry(Generic[T]):
    value: T
    owner: str
    uid: str
    revision: int
    labels: Object | None


class Store(Generic[T]):
    """Keeps `keep(object)` of each object; `of` finds all with the same `owner_of(value)`."""

    def __init__(self, keep: Callable[[Object], T], owner_of: Callable[[T], str]) -> None:
        self._keep = keep
        self._owner_of = owner_of
        self._entries: dict[Key, _Entry[T]] = {}
        self._owned: dict[str, tuple[T, ...]] = {}
        self._revisions: dict[str | None, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> T | None:
        entry = self._entries.get(key)
        return entry.value if entry else None

    def of(self, owner: str) -> tuple[T, ...]:
        return self._owned.get(owner, ())

    def values(self) -> Iterator[T]:
        return (entry.value for entry in self._entries.values())

    def revision(self, namespace: str) -> int:
        """Everything that happened in the namespace up to here has been seen; 0 before a LIST."""
        return self._revisions.get(None, self._revisions.get(namespace, 0))

    def put(self, item: Object) -> None:
        """Take the answer to a write of our own, unless the watch is past it already.

        Past it, an object that is missing here is gone, and must not come back as a ghost.
        """
        key = _key(item)
        if _revision(item) > max(self.revision(key[0]), self._known(key)):
            self._set(key, item)

    def replace(self, scope: str | None, listing: Listing) -> list[Change]:
        """Make the scope equal to a LIST; returns the changes that implies.

        Only own writes that neither LIST nor watch can have seen outlive it. Everything else
        gives way, even to older versions: the cluster may have been restored from a backup.
        """
        seen = self._revisions.get(scope, 0)
        past = max(seen, int(listing.revision))
        self._revisions[scope] = int(listing.revision)
        items = {_key(item): item for item in listing.items}
        changes = list(self._drop_unlisted(scope, past, items))
        for key, item in items.items():
            entry = self._entries.get(key)
            if entry and (entry.revision > past or seen >= entry.revision == _revision(item)):
                continue
            self._set(key, item)
            changes.append(("MODIFIED" if entry else "ADDED", item))
        return changes

    def apply(self, scope: str | None, kind: str, item: Object) -> bool:
        """Take an event of a watch; tells whether it was news, not the past of what is known."""
        self._revisions[scope] = max(self._revisions.get(scope, 0), _revision(item))
        if kind == "BOOKMARK":
            return False
        key = _key(item)
        if kind == "DELETED":
            return self._delete(key, item["metadata"]["uid"])
        if _revision(item) < self._known(key):
            return False
        # Our own write coming back changes nothing, yet somebody may wait for it.
        self._set(key, item)
        return True

    def _known(self, key: Key) -> int:
        entry = self._entries.get(key)
        return entry.revision if entry else 0

    def _drop_unlisted(
        self, scope: str | None, past: int, items: dict[Key, Object]
    ) -> Iterator[Change]:
        for key, entry in list(self._entries.items()):
            if scope not in {None, key[0]} or entry.revision > past:
                continue
            if key not in items or items[key]["metadata"]["uid"] != entry.uid:
                self._drop(key)
                yield "DELETED", _remains(key, entry)

    def _set(self, key: Key, item: Object) -> None:
        value = self._keep(item)
        metadata = item["metadata"]
        known = self._entries.get(key)
        labels = metadata.get("labels")
        if known and (known.value, known.uid, known.labels) == (value, metadata["uid"], labels):
            known.revision = _revision(item)  # a beat, mostly: of those nothing is kept here
            return
        owner = self._owner_of(value)
        # Mostly they stay the same, and nobody but a LIST without the object asks for them.
        labels = known.labels if known and known.labels == labels else compact(labels)
        self._drop(key)
        uid = intern(metadata["uid"])
        self._entries[key] = _Entry(value, owner, uid, _revision(item), labels)
        self._owned[owner] = (*self._owned.get(owner, ()), value)

    def _delete(self, key: Key, uid: str) -> bool:
        """A newer incarnation outlives the news of the older one's death."""
        entry = self._entries.get(key)
        if entry is None or entry.uid != uid:
            return False
        self._drop(key)
        return True

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        left = tuple(value for value in self._owned[entry.owner] if value is not entry.value)
        if left:
            self._owned[entry.owner] = left
        else:
            del self._owned[entry.owner]


def _remains(key: Key, entry: _Entry[T]) -> Object:
    """All that is left to tell of an object that went unseen."""
    metadata = {
        "namespace": key[0],
        "name": key[1],
        "uid": entry.uid,
        "resourceVersion": str(entry.revision),
        "labels": entry.labels,
    }
    return {"metadata": metadata}


def _key(item: Object) -> Key:
    metadata = item["metadata"]
    return intern(metadata.get("namespace", "")), intern(metadata["name"])


def _revision(item: Object) -> int:
    return int(item["metadata"]["resourceVersion"])
