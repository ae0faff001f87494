"""REPORT: the last stage of a pass. Writes the status where it differs, and then the Events.

The status goes out by PUT with the resourceVersion that was planned from, so a stale view never
overwrites a newer one. Events are written only once the status is, and never stop a pass.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import count

from supervisor_operator.api.v1alpha1.supervisor_status import SupervisorStatus
from supervisor_operator.api.v1alpha1.team_status import TeamStatus
from supervisor_operator.core.events import Note
from supervisor_operator.core.words import MANAGER
from supervisor_operator.errors import ClusterError, NotFoundError
from supervisor_operator.kube.cluster import EVENTS, Cluster, Object, Resource

IDENTITY = ("name", "namespace", "uid", "resourceVersion")
NOTE_LIMIT = 1024
FOLD_SECONDS = 600.0
REMEMBERED = 10_000

_log = logging.getLogger(__name__)


def dump_status(status: SupervisorStatus | TeamStatus) -> Object:
    dumped: Object = status.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dumped


async def write_status(
    cluster: Cluster, resource: Resource, item: Object, status: Object
) -> Object | None:
    """The object as the server has it now; None where there was nothing to write."""
    if item["status"] == status:
        return None
    metadata = item["metadata"]
    # Of what is not status the server keeps its own, so it need not travel and be checked.
    wanted = {key: item[key] for key in ("apiVersion", "kind")}
    wanted["metadata"] = {name: metadata[name] for name in IDENTITY}
    return await cluster.replace_status(
        resource, metadata["namespace"], wanted | {"status": status}
    )


@dataclass(slots=True)
class _Told:
    name: str
    times: int
    last: float


class Storyteller:
    """Writes Events; what is told again within minutes only raises the count of the first."""

    def __init__(
        self,
        cluster: Cluster,
        identity: str,
        clock: Callable[[], float],
        wall: Callable[[], datetime],
    ) -> None:
        self._cluster = cluster
        self._identity = identity
        self._clock = clock
        self._wall = wall
        self._numbers = count()
        self._told: dict[int, _Told] = {}

    async def tell(self, item: Object, notes: Iterable[Note]) -> None:
        for note in notes:
            try:
                await self._tell(item, note)
            except ClusterError as error:
                _log.warning("event %s was not written: %s", note.reason, error)

    async def _tell(self, item: Object, note: Note) -> None:
        key = hash((item["metadata"]["uid"], note.reason, note.text))
        told = self._told.get(key)
        if told and self._clock() - told.last < FOLD_SECONDS:
            told.times, told.last = told.times + 1, self._clock()
            series = {"count": told.times, "lastObservedTime": self._stamp()}
            namespace = item["metadata"]["namespace"]
            with suppress(NotFoundError):
                await self._cluster.merge(EVENTS, namespace, told.name, {"series": series})
                return
        event = self._event(item, note)
        await self._cluster.create(EVENTS, item["metadata"]["namespace"], event)
        if len(self._told) >= REMEMBERED:
            self._told.clear()
        self._told[key] = _Told(event["metadata"]["name"], 1, self._clock())

    def _event(self, item: Object, note: Note) -> Object:
        metadata = item["metadata"]
        moment = f"{int(self._wall().timestamp() * 1e6):x}.{next(self._numbers):x}"
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                "name": f"{metadata['name']}.{moment}",
                "namespace": metadata["namespace"],
            },
            "eventTime": self._stamp(),
            "reportingController": MANAGER,
            "reportingInstance": self._identity,
            "action": str(note.reason),
            "reason": str(note.reason),
            "note": note.text[:NOTE_LIMIT],
            "type": "Warning" if note.warning else "Normal",
            "regarding": {
                "apiVersion": item["apiVersion"],
                "kind": item["kind"],
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
        }

    def _stamp(self) -> str:
        return self._wall().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
