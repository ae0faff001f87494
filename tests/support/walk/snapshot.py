"""What an object came to, with all that belongs to it, made comparable with another of that spec.

MAY_DIFFER and HISTORY are the whole list of what may be other than in a fresh one; a team also
remembers members that left.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.tokens import Admin

Json = dict[str, Any]
CUSTOM = "/apis/supervision.dev/v1alpha1"
SUPERVISOR_LABEL = "supervision.dev/supervisor"

MAY_DIFFER = {
    "observedGeneration": "edits are counted",
    "lastTransitionTime": "another time",
    "lastHeartbeatTime": "another time",
    "startTime": "another time",
    "joinedAt": "another time",
    "podUID": "another pod",
    "uid": "another object",
    "agentId": "another object",
    "nodeName": "the scheduler's choice",
    "run": "a changed template begins another run; how many is checked for itself",
    "restarts": "the same",
    "forgivenRun": "a changed template gives the budget back",
    "supervision.dev/run": "the same, on the pod",
    "supervision.dev/restarts": "the same, on the pod",
    "supervision.dev/forgiven-run": "the same, on the pod",
    "supervision.dev/reason": "a first run is no changed template",
    "supervision.dev/restart-request": "what was handled stays on the pod",
}
HISTORY = {
    "supervision.dev/team-order": "the last group restart, on the pod",
    "order": "the last group restart",
    "orderTimes": "group restarts before",
    "lastRestartTime": "when the last run began; one made Stopped or Paused had none",
}
"""Likewise, and a fresh one has none."""
NO_BEATS_MISSED = ("missedHeartbeats", 0)
"""Says the same as its absence."""
RUN = re.compile(r"-r\d+\b")


@dataclass(frozen=True, slots=True)
class View:
    """All objects of one namespace at about the same moment."""

    supervisors: dict[str, Json]
    teams: dict[str, Json]
    pods: dict[str, list[Json]]
    heartbeats: dict[str, list[Json]]

    def item(self, kind: str, name: str) -> Json | None:
        return (self.teams if kind == "SupervisorTeam" else self.supervisors).get(name)

    def agents(self, item: Json) -> list[Json]:
        """The Supervisor itself; of a team those that it owns or names."""
        if item["kind"] == "Supervisor":
            return [item]
        named = {entry["ref"]["name"] for entry in item["spec"]["members"] if "ref" in entry}
        return [
            one
            for name, one in self.supervisors.items()
            if name in named or item["metadata"]["uid"] in _owners(one)
        ]

    def versions(self, item: Json) -> tuple[str, ...]:
        """Of the object and all that belongs to it."""
        found = [item, *self.agents(item)]
        for agent in self.agents(item):
            name = agent["metadata"]["name"]
            found += [*self.pods.get(name, ()), *self.heartbeats.get(name, ())]
        return tuple(one["metadata"]["resourceVersion"] for one in found)


def look(admin: Admin, namespace: str) -> View:
    def items(path: str) -> list[Json]:
        group, _, plural = path.rpartition("/")
        reply = admin.ask("GET", f"{group}/namespaces/{namespace}/{plural}")
        return list(reply.body["items"])

    # A Supervisor's status tells of its pods, a team's of its Supervisors: the tellers come first.
    teams = _by_name(items(f"{CUSTOM}/supervisorteams"))
    supervisors = _by_name(items(f"{CUSTOM}/supervisors"))
    heartbeats = _by_supervisor(items(f"{CUSTOM}/heartbeats"))
    return View(supervisors, teams, _by_supervisor(items("/api/v1/pods")), heartbeats)


def snapshot(view: View, item: Json) -> Json:
    found: Json = {
        "status": item.get("status"),
        "agents": {one["metadata"]["name"]: _agent(view, one) for one in view.agents(item)},
    }
    return dict(masked(found, item["metadata"]["name"]))


def is_settled(view: View, item: Json) -> bool:
    """Looked at as it is now, and nothing under way."""
    return all(is_looked_at(one) and not _is_moving(one) for one in (item, *view.agents(item)))


def is_looked_at(item: Json) -> bool:
    seen = item.get("status", {}).get("observedGeneration")
    return bool(seen == item["metadata"]["generation"])


def condition(item: Json, kind: str) -> Json:
    conditions = item.get("status", {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == kind), {})


def masked(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {
            key.replace(name, "NAME"): "…" if key in MAY_DIFFER else masked(one, name)
            for key, one in value.items()
            if key not in HISTORY and (key, one) != NO_BEATS_MISSED
        }
    if isinstance(value, list):
        return [masked(one, name) for one in value if not _has_left(one)]
    return RUN.sub("-rN", value.replace(name, "NAME")) if isinstance(value, str) else value


def differences(wanted: Any, found: Any, path: str = "") -> Iterator[str]:
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted(wanted.keys() | found.keys()):
            yield from differences(wanted.get(key), found.get(key), f"{path}.{key}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif wanted != found:
        yield f"{path}: fresh {json.dumps(wanted)}, walked {json.dumps(found)}"


def _agent(view: View, item: Json) -> Json:
    name = item["metadata"]["name"]
    return {
        "spec": item["spec"],
        "status": item.get("status"),
        "pods": [
            {
                "name": pod["metadata"]["name"],
                "labels": pod["metadata"]["labels"],
                "annotations": pod["metadata"]["annotations"],
                "spec": pod["spec"],
                "phase": pod["status"]["phase"],
                "going": "deletionTimestamp" in pod["metadata"],
            }
            for pod in view.pods.get(name, ())
        ],
        "heartbeats": [
            {"name": beat["metadata"]["name"], "spec": beat["spec"]}
            for beat in view.heartbeats.get(name, ())
        ],
    }


def _is_moving(item: Json) -> bool:
    return bool(condition(item, "Reconciling")) or not condition(item, "Ready")


def _has_left(entry: Any) -> bool:
    return isinstance(entry, dict) and "leftAt" in entry


def _owners(item: Json) -> set[str]:
    return {owner["uid"] for owner in item["metadata"].get("ownerReferences") or ()}


def _by_name(items: Iterable[Json]) -> dict[str, Json]:
    return {item["metadata"]["name"]: item for item in items}


def _by_supervisor(items: Iterable[Json]) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = defaultdict(list)
    for item in items:
        found[(item["metadata"].get("labels") or {}).get(SUPERVISOR_LABEL, "")].append(item)
    return dict(found)
