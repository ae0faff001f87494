"""What is kept of an object: few words to choose by, and its answers ready to be sent.

Answers are kept as bytes: they are smaller than the objects, and most reads only send them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from supervisor_operator.api.v1alpha1.team_status import TeamStatus
from supervisor_operator.core.health.assess import judge
from supervisor_operator.core.health.level import level_of, team_level
from supervisor_operator.core.health.report import Level
from supervisor_operator.core.health.subject import Subject
from supervisor_operator.kube.cluster import Object
from supervisor_operator.kube.store import Key
from supervisor_operator.snapshot import Passes, SupervisorState, actual_of, desired_of

UNSEEN = Passes(0, datetime.min.replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class Kept:
    key: Key
    uid: str
    labels: dict[str, str]
    phase: str
    health: str
    level: Level
    shown: bytes
    """The whole object as the API shows it."""
    brief: bytes = b""
    """Its entry in the snapshot."""
    state: SupervisorState | None = field(default=None, compare=False)

    @property
    def content(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.shown)
        return found

    @property
    def item(self) -> Object:
        """The object again, as far as the health answer reads it."""
        found = self.content
        metadata = {
            "namespace": self.key[0],
            "name": self.key[1],
            "uid": self.uid,
            "generation": found["generation"],
            "creationTimestamp": found.get("createdAt"),
        }
        return {"metadata": metadata, "spec": found["spec"], "status": found["status"]}


def pack(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def keep_supervisor(item: Object) -> Kept:
    subject = Subject.of(item)
    level, status = level_of(subject), subject.status
    plain = {"spec": item.get("spec") or {}, "status": item.get("status") or {}}
    actual = actual_of(status)
    return Kept(
        key=(subject.namespace, subject.name),
        uid=subject.uid,
        labels=item["metadata"].get("labels") or {},
        phase=str(status.phase or ""),
        health=str(status.health or ""),
        level=level,
        shown=pack(_shown(item, level)),
        brief=pack(_brief(subject, level)),
        state=SupervisorState(
            subject.uid, desired_of(item | plain), actual, last_action=None, passes=UNSEEN
        ),
    )


def keep_team(item: Object) -> Kept:
    metadata = item["metadata"]
    try:
        status = TeamStatus.model_validate(item.get("status") or {})
    except ValidationError:
        status = TeamStatus()
    level = team_level(status, metadata.get("generation", 0))
    return Kept(
        key=(metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        labels=metadata.get("labels") or {},
        phase=str(status.phase or ""),
        health="",
        level=level,
        shown=pack(_shown(item, level)),
    )


def _shown(item: Object, level: Level) -> dict[str, Any]:
    metadata = item["metadata"]
    return {
        "id": metadata["uid"],
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "labels": metadata.get("labels") or {},
        "generation": metadata.get("generation", 0),
        "resourceVersion": metadata["resourceVersion"],
        "createdAt": metadata.get("creationTimestamp"),
        "level": level,
        "spec": item.get("spec") or {},
        "status": item.get("status") or {},
    }


def _brief(subject: Subject, level: Level) -> dict[str, Any]:
    status, spec, ready = subject.status, subject.spec, subject.ready
    _, reason, cause, step = judge(subject, UNSEEN.time)
    is_silent = level is not Level.HEALTHY and status.last_heartbeat_time
    return {
        "id": subject.uid,
        "namespace": subject.namespace,
        "name": subject.name,
        "level": level,
        "reason": reason,
        "cause": cause,
        "nextStep": step.text,
        "since": _text(ready.last_transition_time if ready else subject.created),
        # Of a healthy agent it would change with each beat, and wake every reader.
        "lastBeat": _text(status.last_heartbeat_time) if is_silent else None,
        "mode": spec.operating_mode,
        "generation": subject.generation,
        "phase": status.phase,
        "health": status.health,
        "pod": status.pod_name,
        "run": status.run or 0,
        "restarts": status.restarts or 0,
        "parent": spec.parent_ref.name if spec.parent_ref else None,
        "team": status.member_of.team if status.member_of else None,
    }


def _text(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
