"""A Heartbeat as JSON made into the little that is kept of it; the beats are in `kube.beats`."""

from __future__ import annotations

from dataclasses import dataclass
from sys import intern

from supervisor_operator.core.pods import controller_of
from supervisor_operator.kube.cluster import Object


@dataclass(frozen=True, slots=True)
class BeatObject:
    name: str
    namespace: str
    uid: str
    pod_uid: str
    owner: str


def slim_heartbeat(item: Object) -> Object:
    """Without who manages which field, which is more than half of it."""
    item["metadata"].pop("managedFields", None)
    return item


def view_heartbeat(item: Object) -> BeatObject:
    metadata = item["metadata"]
    return BeatObject(
        name=intern(metadata["name"]),
        namespace=intern(metadata.get("namespace", "")),
        uid=metadata["uid"],
        pod_uid=intern(str((item.get("spec") or {}).get("podUID", ""))),
        owner=intern(controller_of(item)),
    )
