"""What is judged: one Supervisor as far as it can be read, its live beat, and the time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from supervisor_operator.api.v1alpha1.meta import Condition, ConditionStatus
from supervisor_operator.api.v1alpha1.supervisor import SupervisorSpec
from supervisor_operator.api.v1alpha1.supervisor_status import SupervisorStatus
from supervisor_operator.core.words import ConditionType


@dataclass(frozen=True, slots=True)
class Beat:
    """The newest beat of the newest pod; `time` as near to our own clock as it can be known."""

    time: datetime | None
    problem: str = ""
    pod_uid: str = ""

    @classmethod
    def of(cls, item: dict[str, Any], arrived: datetime | None = None) -> Beat:
        """From a Heartbeat; where it was seen to arrive, the relay's clock is not needed."""
        status = item.get("status") or {}
        age = status.get("beatAgeMillis")
        found = _time(status.get("beatTime"))
        if arrived and age is not None:
            found = arrived - timedelta(milliseconds=age)
        uid = str((item.get("spec") or {}).get("podUID", ""))
        return cls(found, status.get("problem") or "", uid)


@dataclass(frozen=True, slots=True)
class Subject:
    namespace: str
    name: str
    uid: str
    generation: int
    created: datetime | None
    spec: SupervisorSpec
    status: SupervisorStatus

    @classmethod
    def of(cls, item: dict[str, Any]) -> Subject:
        """Never fails: a spec or status that cannot be read counts as an empty one."""
        metadata = item["metadata"]
        return cls(
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
            uid=metadata.get("uid", ""),
            generation=metadata.get("generation", 0),
            created=_time(metadata.get("creationTimestamp")),
            spec=_spec(item.get("spec") or {}),
            status=_status(item.get("status") or {}),
        )

    def condition(self, kind: ConditionType) -> Condition | None:
        return next((one for one in self.status.conditions or () if one.type == kind), None)

    def is_true(self, kind: ConditionType) -> bool:
        found = self.condition(kind)
        return found is not None and found.status is ConditionStatus.TRUE

    @property
    def ready(self) -> Condition | None:
        return self.condition(ConditionType.READY)

    @property
    def reason(self) -> str:
        return self.ready.reason if self.ready else ""

    @property
    def reconciling(self) -> str:
        """Why the operator is at work; empty where it is not."""
        found = self.condition(ConditionType.RECONCILING)
        return found.reason if found else ""

    @property
    def allowed_silence(self) -> timedelta:
        beat = self.spec.heartbeat
        return timedelta(seconds=(beat.missed_threshold + 1) * beat.interval_seconds)


def _spec(found: Any) -> SupervisorSpec:
    try:
        return SupervisorSpec.model_validate(found)
    except ValidationError:
        return SupervisorSpec()


def _status(found: Any) -> SupervisorStatus:
    try:
        return SupervisorStatus.model_validate(found)
    except ValidationError:
        return SupervisorStatus()


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
