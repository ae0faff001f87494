"""What passes tell the outside: counts for the metrics, and whoever else wants to know."""

from __future__ import annotations

from supervisor_operator.core.plan import Plan
from supervisor_operator.core.words import EventReason
from supervisor_operator.kube.cluster import SUPERVISORS, TEAMS, Object
from supervisor_operator.queue import Key
from supervisor_operator.reconcile import Observer
from supervisor_operator.telemetry.metrics import Metrics


def kind_of(key: Key) -> str:
    """The kind of a key's object; without a word on it, it is a Supervisor."""
    return key[2] if len(key) > len(("namespace", "name")) else SUPERVISORS.kind


class FanOut:
    """Tells several observers, in the order given."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def passed(self, item: Object, plan: Plan, seconds: float) -> None:
        for observer in self._observers:
            observer.passed(item, plan, seconds)

    def failed(self, key: Key, error: Exception) -> None:
        for observer in self._observers:
            observer.failed(key, error)

    def gone(self, key: Key) -> None:
        for observer in self._observers:
            observer.gone(key)


class MetricsObserver:
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def passed(self, _item: Object, plan: Plan, seconds: float) -> None:
        metrics = self._metrics
        self._count(SUPERVISORS.kind, seconds)
        for note in plan.notes:
            if note.reason is EventReason.UNRESPONSIVE:
                metrics.verdicts_total.labels(note.cause).inc()
                metrics.detection_latency_seconds.observe((plan.overdue or 0.0) + seconds)
            elif note.reason is EventReason.RESTARTED:
                metrics.restarts_total.labels(note.cause).inc()

    def team_passed(self, seconds: float) -> None:
        self._count(TEAMS.kind, seconds)

    def failed(self, key: Key, error: Exception) -> None:
        self._metrics.reconcile_total.labels(kind_of(key), type(error).__name__).inc()

    def gone(self, key: Key) -> None:
        self._metrics.reconcile_total.labels(kind_of(key), "gone").inc()

    def _count(self, kind: str, seconds: float) -> None:
        self._metrics.reconcile_total.labels(kind, "ok").inc()
        self._metrics.reconcile_seconds.labels(kind).observe(seconds)
