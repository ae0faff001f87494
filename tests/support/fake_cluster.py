"""A cluster in memory: revisions, conflicts, watches, and every way a watch can go wrong.

It behaves as the API server does where the operator can tell the difference: writes that change
nothing make no revision, `status` is written through its own verb only, a scheduled pod that runs
stays, terminating, until `remove` plays the kubelet. Nothing is validated, defaulted or collected.
"""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from supervisor_operator.errors import (
    ClusterError,
    ConflictError,
    GoneError,
    InvalidError,
    NotFoundError,
    TransientError,
)
from supervisor_operator.kube.cluster import LEASES, PODS, Listing, Object, Resource, Slim, as_it_is

Place = tuple[str, str, str]
"""Plural, namespace (empty where there is none) and name."""

TIME = "2026-01-01T00:00:00Z"
_WRITABLE = ("labels", "annotations", "ownerReferences")
_STATUS_APART = {"pods", "supervisors", "supervisorteams", "heartbeats"}


@dataclass(frozen=True, slots=True)
class _Happening:
    revision: int
    plural: str
    before: Object | None
    after: Object | None


@dataclass(frozen=True, slots=True)
class _Fault:
    verb: str
    plural: str
    error: ClusterError
    after: bool


@dataclass(slots=True, eq=False)
class _Watch:
    plural: str
    namespace: str | None
    selector: str
    queue: asyncio.Queue[Object | ClusterError | None] = field(default_factory=asyncio.Queue)

    def tell(self, happening: _Happening) -> None:
        if happening.plural == self.plural and (event := self._event(happening)):
            self.queue.put_nowait(event)

    def _event(self, happening: _Happening) -> Object | None:
        before, after = self._seen(happening.before), self._seen(happening.after)
        if before is None and after is None:
            return None
        if after is None:
            last = copy.deepcopy(happening.after or before)
            assert last
            last["metadata"]["resourceVersion"] = str(happening.revision)
            return {"type": "DELETED", "object": last}
        return {"type": "MODIFIED" if before else "ADDED", "object": copy.deepcopy(after)}

    def _seen(self, item: Object | None) -> Object | None:
        return item if item and _matches(item, self.namespace, self.selector) else None


class FakeCluster:
    """Implements `kube.cluster.Cluster`.

    What needs no `await` is done by others: `add`, `change`, `remove` by people and controllers,
    `fail`, `cut`, `forget`, `end_watches`, `bookmark` by the API server and the network.
    """

    def __init__(self) -> None:
        self.objects: dict[Place, Object] = {}
        self.revision = 100
        self.calls: list[tuple[str, str, str]] = []
        self.guard: Callable[[], None] = lambda: None
        self.latency = 0.0
        self.server_version = (1, 36)
        self._history: list[_Happening] = []
        self._forgotten = 0
        self._watches: list[_Watch] = []
        self._faults: list[_Fault] = []
        self._uids = 0

    def add(self, resource: Resource, item: Object, namespace: str = "default") -> Object:
        """Store a new object as it is, status included."""
        stored = copy.deepcopy(item)
        metadata = stored["metadata"]
        place = (resource.plural, metadata.setdefault("namespace", namespace), metadata["name"])
        if place in self.objects:
            raise _exists(resource, place)
        self._uids += 1
        stored |= {"apiVersion": resource.api_version, "kind": resource.kind}
        metadata |= {"uid": f"uid-{self._uids}", "creationTimestamp": TIME, "generation": 1}
        return self._store(place, stored)

    def change(self, resource: Resource, namespace: str, name: str, patch: Object) -> Object:
        """Merge a patch into an object, status included."""
        place = (resource.plural, namespace, name)
        return self._store(place, _merged(self._find(resource, place), patch))

    def remove(self, resource: Resource, namespace: str, name: str) -> None:
        place = (resource.plural, namespace, name)
        gone = self._find(resource, place)
        del self.objects[place]
        self._tell(place, gone, None)

    def fail(
        self, verb: str, resource: Resource, error: ClusterError, *, after: bool = False
    ) -> None:
        """Make one request fail; `after` does the work first and then loses the answer."""
        self._faults.append(_Fault(verb, resource.plural, error, after))

    def cut(self) -> None:
        """Break every open watch."""
        self._end_watches(lambda: TransientError("connection reset by peer"))

    def forget(self) -> None:
        """Compact the history: open watches and all revisions up to now are gone."""
        self._history.clear()
        self._forgotten = self.revision
        self._end_watches(lambda: GoneError("too old resource version", status=410))

    def end_watches(self) -> None:
        """End every open watch as the API server does when its time is up."""
        self._end_watches(lambda: None)

    def bookmark(self) -> None:
        event = {"type": "BOOKMARK", "object": _bookmark(self.revision)}
        for watch in self._watches:
            watch.queue.put_nowait(event)

    @property
    def watching(self) -> int:
        return len(self._watches)

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Object:
        async with self._call("get", resource, name):
            return copy.deepcopy(self._find(resource, (resource.plural, namespace or "", name)))

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        selector: str = "",
        metadata_only: bool = False,
        slim: Slim = as_it_is,
    ) -> Listing:
        async with self._call("list", resource, namespace or ""):
            found = [
                copy.deepcopy(item)
                for (plural, _, _), item in self.objects.items()
                if plural == resource.plural and _matches(item, namespace, selector)
            ]
            if metadata_only:
                found = [{"metadata": item["metadata"]} for item in found]
            return Listing([slim(item) for item in found], str(self.revision))

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        namespace: str | None,
        revision: str,
        *,
        selector: str = "",
        seconds: int = 300,
    ) -> AsyncIterator[AsyncIterator[Object]]:
        async with self._call("watch", resource, revision):
            if int(revision) < self._forgotten:
                raise GoneError(f"too old resource version: {revision}", status=410)
            watch = _Watch(resource.plural, namespace, selector)
            for happening in self._history:
                if happening.revision > int(revision):
                    watch.tell(happening)
            self._watches.append(watch)
        end = asyncio.get_running_loop().call_later(seconds, watch.queue.put_nowait, None)
        try:
            yield _events(watch)
        finally:
            end.cancel()
            self._watches = [other for other in self._watches if other is not watch]

    async def create(
        self, resource: Resource, namespace: str | None, item: Object, *, dry_run: bool = False
    ) -> Object:
        name = item["metadata"]["name"]
        async with self._call("dry-run" if dry_run else "create", resource, name):
            place = (resource.plural, namespace or "", name)
            if place in self.objects:
                raise _exists(resource, place)
            if dry_run:
                return copy.deepcopy(item)
            fresh = dict(item)
            if resource.plural in _STATUS_APART:
                fresh.pop("status", None)
            return self.add(resource, fresh, namespace or "")

    async def replace(self, resource: Resource, namespace: str | None, item: Object) -> Object:
        async with self._call("replace", resource, item["metadata"]["name"]):
            place, stored = self._for_update(resource, namespace, item)
            wanted = copy.deepcopy(item)
            ours = {name: item["metadata"].get(name) for name in _WRITABLE}
            wanted["metadata"] = _merged(stored["metadata"], ours)
            if resource.plural in _STATUS_APART:
                wanted.pop("status", None)
                wanted |= {"status": stored["status"]} if "status" in stored else {}
            return self._store(place, wanted)

    async def replace_status(self, resource: Resource, namespace: str, item: Object) -> Object:
        async with self._call("replace_status", resource, item["metadata"]["name"]):
            place, stored = self._for_update(resource, namespace, item)
            return self._store(place, {**stored, "status": copy.deepcopy(item["status"])})

    async def merge(self, resource: Resource, namespace: str, name: str, patch: Object) -> Object:
        async with self._call("merge", resource, name):
            place = (resource.plural, namespace, name)
            stored = self._find(resource, place)
            _same_uid(stored, patch.get("metadata", {}).get("uid"))
            return self._store(place, _merged(stored, patch))

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str | None = None
    ) -> Object:
        async with self._call("delete", resource, name):
            stored = self._find(resource, (resource.plural, namespace, name))
            _same_incarnation(stored, uid)
            if resource == PODS and _runs(stored):
                return self.change(
                    resource, namespace, name, {"metadata": {"deletionTimestamp": TIME}}
                )
            self.remove(resource, namespace, name)
            return stored

    async def version(self) -> tuple[int, int]:
        return self.server_version

    @asynccontextmanager
    async def _call(self, verb: str, resource: Resource, name: str) -> AsyncIterator[None]:
        if verb not in {"get", "list", "watch"} and resource != LEASES:
            self.guard()
        self.calls.append((verb, resource.plural, name))
        await asyncio.sleep(self.latency)
        fault = next(
            (at for at in self._faults if (at.verb, at.plural) == (verb, resource.plural)), None
        )
        if fault:
            self._faults.remove(fault)
        if fault and not fault.after:
            raise fault.error
        yield
        if fault:
            raise fault.error

    def _find(self, resource: Resource, place: Place) -> Object:
        if place not in self.objects:
            raise NotFoundError(f'{resource.plural} "{place[2]}" not found', status=404)
        return self.objects[place]

    def _for_update(
        self, resource: Resource, namespace: str | None, item: Object
    ) -> tuple[Place, Object]:
        metadata = item["metadata"]
        place = (resource.plural, namespace or "", metadata["name"])
        stored = self._find(resource, place)
        if "resourceVersion" not in metadata:
            raise InvalidError("metadata.resourceVersion: must be specified", status=422)
        _same_incarnation(stored, metadata.get("uid"))
        if metadata["resourceVersion"] != stored["metadata"]["resourceVersion"]:
            raise ConflictError(
                f'Operation cannot be fulfilled on {resource.plural} "{place[2]}": the object has'
                " been modified; please apply your changes to the latest version and try again",
                status=409,
                reason="Conflict",
            )
        return place, stored

    def _store(self, place: Place, item: Object) -> Object:
        before = self.objects.get(place)
        if item != before:
            if before and before.get("spec") != item.get("spec"):
                item["metadata"] = item["metadata"] | {
                    "generation": before["metadata"]["generation"] + 1
                }
            self.revision += 1
            item["metadata"] = item["metadata"] | {"resourceVersion": str(self.revision)}
            self.objects[place] = item
            self._tell(place, before, item)
        return copy.deepcopy(item)

    def _tell(self, place: Place, before: Object | None, after: Object | None) -> None:
        if after is None:
            self.revision += 1
        happening = _Happening(self.revision, place[0], before, after)
        self._history.append(happening)
        for watch in self._watches:
            watch.tell(happening)

    def _end_watches(self, end: Callable[[], ClusterError | None]) -> None:
        for watch in self._watches:
            watch.queue.put_nowait(end())
        self._watches = []


async def _events(watch: _Watch) -> AsyncIterator[Object]:
    while (event := await watch.queue.get()) is not None:
        if isinstance(event, ClusterError):
            raise event
        yield event


def _bookmark(revision: int) -> Object:
    return {"metadata": {"resourceVersion": str(revision)}}


def _exists(resource: Resource, place: Place) -> ConflictError:
    return ConflictError(
        f'{resource.plural} "{place[2]}" already exists', status=409, reason="AlreadyExists"
    )


def _same_incarnation(stored: Object, uid: str | None) -> None:
    found = stored["metadata"]["uid"]
    if uid and uid != found:
        raise ConflictError(
            f"the UID in the precondition ({uid}) does not match the UID in record ({found})",
            status=409,
            reason="Conflict",
        )


def _same_uid(stored: Object, uid: str | None) -> None:
    """A patch for another incarnation is not a conflict but an attempt to change the uid."""
    if uid and uid != stored["metadata"]["uid"]:
        raise InvalidError(
            f'metadata.uid: Invalid value: "{uid}": field is immutable',
            status=422,
            reason="Invalid",
        )


def _runs(pod: Object) -> bool:
    finished = pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}
    return "nodeName" in pod.get("spec", {}) and not finished


def _merged(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value)
    return merged


def _matches(item: Object, namespace: str | None, selector: str) -> bool:
    metadata = item["metadata"]
    if namespace is not None and metadata.get("namespace") != namespace:
        return False
    labels = metadata.get("labels", {})
    return all(_fits(term, labels) for term in _terms(selector))


def _terms(selector: str) -> Iterator[str]:
    """Split at the commas outside parentheses."""
    return (term.strip() for term in re.split(r",(?![^(]*\))", selector) if term.strip())


def _fits(term: str, labels: dict[str, str]) -> bool:
    if among := re.fullmatch(r"(\S+)\s+(in|notin)\s+\((.*)\)", term):
        name, word, values = among.groups()
        return (labels.get(name) in re.split(r"\s*,\s*", values)) == (word == "in")
    if "=" in term:
        name, value = re.split(r"==?", term, maxsplit=1)
        return (
            labels.get(name) == value if not name.endswith("!") else labels.get(name[:-1]) != value
        )
    return (term.lstrip("!") in labels) != term.startswith("!")
