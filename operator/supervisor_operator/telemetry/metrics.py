"""The metrics: what the operator counts and measures, on a registry of its own.

No label names an agent, so the number of series does not grow with the fleet. State that lives
elsewhere (queue, stores, lease) is read at the scrape, by the callable given to `set_function`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from supervisor_operator.api.v1alpha1.meta import Health, Phase

CONTENT_TYPE = CONTENT_TYPE_LATEST

_PREFIX = "supervisor_operator"
_WORK_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_BEAT_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_DETECTION_SECONDS = (
    *(0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3),
    *(0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0),
)


class LiveGauge(Collector):
    """A gauge with one label, all values read in one call; known words are never absent."""

    def __init__(
        self,
        registry: CollectorRegistry,
        name: str,
        text: str,
        label: str,
        known: Iterable[str] = (),
    ) -> None:
        self._family = (f"{_PREFIX}_{name}", text)
        self._label = label
        self._zeros: dict[str, float] = dict.fromkeys(known, 0.0)
        self._read: Callable[[], Mapping[str, float]] = dict
        registry.register(self)

    def set_function(self, read: Callable[[], Mapping[str, float]]) -> None:
        self._read = read

    @override
    def collect(self) -> Iterable[GaugeMetricFamily]:
        family = GaugeMetricFamily(*self._family, labels=[self._label])
        for word, value in (self._zeros | dict(self._read())).items():
            family.add_metric([word], value)
        yield family


class Metrics:
    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._gauge("build_info", "Version of the operator.", ["version"]).labels(version).set(1)
        self.leader = self._gauge("leader", "Whether this process is the leader.")
        self._add_work()
        self._add_api_calls()
        self._add_fleet()
        self._add_heartbeats()

    def render(self) -> bytes:
        """All of them, in the text format of Prometheus."""
        return generate_latest(self.registry)

    def _add_work(self) -> None:
        self.reconcile_total = self._counter(
            "reconcile", "Passes over an object.", ["kind", "result"]
        )
        self.reconcile_seconds = self._histogram(
            "reconcile_seconds", "Time one pass took.", ["kind"], _WORK_SECONDS
        )
        self.queue_depth = self._gauge("queue_depth", "Keys that wait for a worker.")
        self.queue_oldest_seconds = self._gauge(
            "queue_oldest_seconds", "How long the first of them has waited."
        )
        self.queue_delayed = self._gauge("queue_delayed", "Keys to be looked at later.")

    def _add_api_calls(self) -> None:
        self.api_calls_total = self._counter(
            "api_calls", "Requests to the API server.", ["verb", "resource", "code"]
        )
        self.api_call_seconds = self._histogram(
            "api_call_seconds", "Time to the answer of the API server.", ["verb"], _WORK_SECONDS
        )
        self.watch_age_seconds = self._live(
            "watch_age_seconds", "Time since a watch was last heard of.", "resource"
        )

    def _add_fleet(self) -> None:
        self.supervisors = self._live("supervisors", "Supervisors by phase.", "phase", Phase)
        self.supervisors_health = self._live(
            "supervisors_health", "Supervisors by health.", "health", Health
        )
        self.restarts_total = self._counter("restarts", "Agents started again.", ["reason"])
        self.guard_active = self._live(
            "guard_active", "Places where a guard holds remedies back.", "guard"
        )

    def _add_heartbeats(self) -> None:
        self.beats_total = self._counter("beats", "Beats seen.")
        self.beat_age_seconds = self._histogram(
            "beat_age_seconds", "Age of a beat when it was seen.", [], _BEAT_SECONDS
        )
        self.verdicts_total = self._counter("verdicts", "Agents found unresponsive.", ["reason"])
        self.detection_latency_seconds = self._histogram(
            "detection_latency_seconds",
            "From an agent's deadline to the verdict in its status.",
            [],
            _DETECTION_SECONDS,
        )

    def _counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        return Counter(name, text, labels, namespace=_PREFIX, registry=self.registry)

    def _gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
        return Gauge(name, text, labels, namespace=_PREFIX, registry=self.registry)

    def _histogram(
        self, name: str, text: str, labels: Sequence[str], buckets: Sequence[float]
    ) -> Histogram:
        return Histogram(
            name, text, labels, namespace=_PREFIX, registry=self.registry, buckets=buckets
        )

    def _live(self, name: str, text: str, label: str, known: Iterable[str] = ()) -> LiveGauge:
        return LiveGauge(self.registry, name, text, label, known)
