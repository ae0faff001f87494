"""A Supervisor as its team sees it, from its object and its pods.

Status and pods come on two watches, never at one moment: of the two the one with the newer run is
believed.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from supervisor_operator.api.v1alpha1.meta import OperatingMode, Phase
from supervisor_operator.api.v1alpha1.supervisor_status import OutcomeType
from supervisor_operator.core.observed import PodView
from supervisor_operator.core.pods import controller_of
from supervisor_operator.core.team.observed import AgentView
from supervisor_operator.core.words import Reason
from supervisor_operator.kube.cluster import Object
from supervisor_operator.kube.family import HEALTHS, PHASES

BACKING_OFF = {Reason.BACK_OFF, Reason.WAITING_FOR_TEAM}
REFUSED = {Reason.CREATE_REFUSED, Reason.NAME_CONFLICT, Reason.POLICY_MISSING}


def view_agent(item: Object, pods: Collection[PodView], mode: OperatingMode) -> AgentView:
    metadata, status, spec = item["metadata"], item["status"], item["spec"]
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    reason = conditions.get("Ready", {}).get("reason")
    outcome = status.get("outcome") or {}
    failed = outcome.get("type") == OutcomeType.FAILED
    beat = spec.get("heartbeat") or {}
    run = status.get("run") or 0
    newest = max(pods, key=lambda pod: pod.run, default=None)
    # A pod is seen before the status that tells of it: until then the words are of an older run.
    is_current = newest is None or newest.run <= run
    return AgentView(
        name=metadata["name"],
        uid=metadata["uid"],
        owner=controller_of(item),
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        spec=spec,
        resource_version=metadata["resourceVersion"],
        leaving="deletionTimestamp" in metadata,
        mode=mode,
        phase=PHASES.get(status.get("phase", "")) if is_current else Phase.SPAWNING,
        health=HEALTHS.get(status.get("health", "")),
        restarts=max([status.get("restarts") or 0, *(pod.restarts for pod in pods)]),
        finished=outcome.get("type") == OutcomeType.FINISHED,
        failed=failed,
        failed_reason=outcome.get("reason", "") if failed else "",
        waiting=is_current and reason == Reason.WAITING_FOR_TEAM,
        backing_off=is_current and reason in BACKING_OFF,
        refused=is_current and reason in REFUSED,
        unreadable=reason == Reason.INVALID_SPEC,
        next_restart=_time(status.get("nextRestartTime")),
        last_restart=_time(status.get("lastRestartTime")) if is_current else None,
        pod_uid=status.get("podUID", ""),
        startup_seconds=beat.get("startupSeconds") or 120,
        order=newest.order if newest and newest.run >= run else _recorded_order(status),
        unfinished_order=next((pod.order for pod in pods if not pod.finished), None),
    )


def _recorded_order(status: Object) -> int:
    """Of a run whose pod is gone."""
    return (status.get("memberOf") or {}).get("order") or 0


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
