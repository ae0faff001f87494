"""A pod as JSON made into a PodView."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from sys import intern
from typing import Any

from supervisor_operator.core.observed import AgentEnd, PodView
from supervisor_operator.core.words import Label, Mark

AGENT = "agent"
RELAY = "supervision-relay"
NODE_TAKEN_AWAY = {"NodeLost", "NodeShutdown", "Terminated"}
DISRUPTIONS = {"Evicted", "Preempting", *NODE_TAKEN_AWAY}
TAINT_EVICTION = "DeletionByTaintManager"
READINESS_GATES = "ReadinessGatesNotReady"
SIGNAL_BASE = 128
MESSAGE_LIMIT = 2048
KEPT_META = (
    *("name", "namespace", "uid", "resourceVersion", "deletionTimestamp"),
    *("labels", "annotations", "ownerReferences"),
)
KEPT_SPEC = ("nodeName", "terminationGracePeriodSeconds")

Json = Mapping[str, Any]


def slim_pod(pod: Json) -> dict[str, Any]:
    """The part of a pod that `view_pod` reads."""
    spec = pod.get("spec") or {}
    containers = [{"name": one.get("name", "")} for one in spec.get("containers") or ()]
    return {
        "metadata": {name: pod["metadata"][name] for name in KEPT_META if name in pod["metadata"]},
        "spec": {name: spec[name] for name in KEPT_SPEC if name in spec}
        | {"containers": containers},
        "status": pod.get("status") or {},
    }


def view_pod(pod: Json) -> PodView:
    """Keep what decisions read; marks that somebody broke count as absent."""
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    marks: Json = meta.get("annotations") or {}
    containers = _by_name(status.get("containerStatuses"))
    agent = containers.get(agent_name(spec))
    conditions = {found["type"]: found for found in status.get("conditions") or ()}
    running = {name for name, found in containers.items() if _state(found, "running") is not None}
    name = agent_name(spec)
    waiting, waiting_message = _waiting(status, conditions)
    return PodView(
        name=intern(meta["name"]),
        namespace=intern(meta.get("namespace", "")),
        uid=intern(meta["uid"]),
        owner=intern(controller_of(pod)),
        run=_number((meta.get("labels") or {}).get(Label.RUN)),
        resource_version=meta.get("resourceVersion", ""),
        restarts=_number(marks.get(Mark.RESTARTS)),
        counted=_number(marks.get(Mark.COUNTED)),
        forgiven=_number(marks.get(Mark.FORGIVEN)),
        template_hash=intern(marks.get(Mark.TEMPLATE, "")),
        request=marks.get(Mark.REQUEST, ""),
        order=_number(marks.get(Mark.ORDER)),
        parent_order=_number(marks.get(Mark.PARENT_ORDER)),
        run_reason=intern(marks.get(Mark.REASON, "")),
        ended_by=marks.get(Mark.ENDED_BY, ""),
        phase=intern(status.get("phase", "Pending")),
        reason=status.get("reason", ""),
        message=status.get("message", ""),
        terminating="deletionTimestamp" in meta,
        disrupted=_is_true(conditions, "DisruptionTarget") or status.get("reason") in DISRUPTIONS,
        ready=_is_true(conditions, "Ready"),
        node=intern(spec.get("nodeName", "")),
        started_at=_time((_state(agent, "running") or {}).get("startedAt")),
        running=name in running,
        others_running=bool(running - {name}),
        relay_running=_relay_running(status),
        node_lost=_node_lost(conditions, running),
        end=_end(agent),
        waiting=waiting,
        waiting_message=waiting_message,
        grace_seconds=_number(spec.get("terminationGracePeriodSeconds", 30)),
    )


def controller_of(item: Json) -> str:
    """UID of the controlling owner; empty where there is none."""
    for owner in item["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner["uid"])
    return ""


def agent_name(pod_spec: Json) -> str:
    """The container called agent, else the first."""
    names = [container.get("name", "") for container in pod_spec.get("containers") or ()]
    return AGENT if AGENT in names or not names else names[0]


def _by_name(statuses: Iterable[Json] | None) -> dict[str, Json]:
    return {found["name"]: found for found in statuses or ()}


def _state(container: Json | None, word: str) -> Json | None:
    found: Json | None = ((container or {}).get("state") or {}).get(word)
    return found


def _is_true(conditions: Mapping[str, Json], name: str) -> bool:
    return bool(conditions.get(name, {}).get("status") == "True")


def _relay_running(status: Json) -> bool:
    relay = _by_name(status.get("initContainerStatuses")).get(RELAY)
    return relay is None or _state(relay, "running") is not None


def _node_lost(conditions: Mapping[str, Json], running: set[str]) -> bool:
    """The node controller took Ready away; a kubelet would have taken ContainersReady too."""
    ready = conditions.get("Ready", {})
    disruption = conditions.get("DisruptionTarget", {})
    silent = (
        bool(running)
        and ready.get("status") == "False"
        and ready.get("reason") != READINESS_GATES
        and _is_true(conditions, "ContainersReady")
    )
    return silent or (
        disruption.get("status") == "True" and disruption.get("reason") == TAINT_EVICTION
    )


def _end(agent: Json | None) -> AgentEnd | None:
    found = _state(agent, "terminated")
    if found is None:
        return None
    code = found.get("exitCode")
    signal = found.get("signal") or (code - SIGNAL_BASE if code and code > SIGNAL_BASE else None)
    return AgentEnd(
        exit_code=code,
        signal=signal,
        reason=found.get("reason", ""),
        message=(found.get("message") or "")[-MESSAGE_LIMIT:],
        finished_at=_time(found.get("finishedAt")),
    )


def _waiting(status: Json, conditions: Mapping[str, Json]) -> tuple[str, str]:
    """The scheduler's or kubelet's own word for what a pod waits for."""
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return scheduled.get("reason", ""), scheduled.get("message", "")
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(kind) or ():
            found = _state(container, "waiting")
            if found and found.get("reason") not in {None, "PodInitializing", "ContainerCreating"}:
                return found["reason"], found.get("message", "")
    return "", ""


def _number(value: Any) -> int:
    try:
        return max(0, int(value))
    except (TypeError, ValueError):
        return 0


def _time(value: str | None) -> datetime | None:
    return datetime.fromisoformat(value) if value else None
