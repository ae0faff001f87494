from __future__ import annotations

from itertools import pairwise

import prometheus_client
from prometheus_client.parser import text_string_to_metric_families

from supervisor_operator.telemetry.metrics import Metrics

Sample = tuple[str, tuple[tuple[str, str], ...]]


def scrape(metrics: Metrics) -> dict[Sample, float]:
    families = text_string_to_metric_families(metrics.render().decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return scrape(metrics)[f"supervisor_operator_{name}", tuple(sorted(labels.items()))]


def test_what_is_counted_is_shown() -> None:
    metrics = Metrics("1.2.3")
    metrics.reconcile_total.labels(kind="Supervisor", result="ok").inc()
    metrics.api_calls_total.labels(verb="create", resource="pods", code="201").inc(2)
    metrics.verdicts_total.labels(reason="HeartbeatsMissed").inc()
    metrics.restarts_total.labels(reason="HeartbeatsMissed").inc()
    metrics.beats_total.inc(5)
    assert value(metrics, "reconcile_total", kind="Supervisor", result="ok") == 1
    assert value(metrics, "api_calls_total", verb="create", resource="pods", code="201") == 2
    assert value(metrics, "verdicts_total", reason="HeartbeatsMissed") == 1
    assert value(metrics, "restarts_total", reason="HeartbeatsMissed") == 1
    assert value(metrics, "beats_total") == 5
    assert value(metrics, "build_info", version="1.2.3") == 1


def test_what_is_measured_falls_into_buckets() -> None:
    metrics = Metrics("1")
    metrics.reconcile_seconds.labels(kind="Supervisor").observe(0.004)
    metrics.api_call_seconds.labels(verb="get").observe(0.004)
    metrics.beat_age_seconds.observe(0.4)
    metrics.detection_latency_seconds.observe(0.012)
    assert value(metrics, "reconcile_seconds_bucket", kind="Supervisor", le="0.0025") == 0
    assert value(metrics, "reconcile_seconds_bucket", kind="Supervisor", le="0.005") == 1
    assert value(metrics, "api_call_seconds_count", verb="get") == 1
    assert value(metrics, "beat_age_seconds_sum") == 0.4
    assert value(metrics, "detection_latency_seconds_bucket", le="0.01") == 0
    assert value(metrics, "detection_latency_seconds_bucket", le="0.02") == 1


def test_detection_buckets_tell_milliseconds_apart_and_reach_five_seconds() -> None:
    metrics = Metrics("1")
    name = "supervisor_operator_detection_latency_seconds_bucket"
    bounds = [float(dict(labels)["le"]) for found, labels in scrape(metrics) if found == name]
    assert bounds[0] == 0.005
    assert bounds[-2] == 5
    assert all(high <= 2 * low for low, high in pairwise(bounds[:-1]))


def test_live_state_is_read_at_the_scrape() -> None:
    metrics = Metrics("1")
    waiting = ["a"]
    phases = {"ACTIVE": 1.0}
    metrics.queue_depth.set_function(lambda: len(waiting))
    metrics.supervisors.set_function(lambda: phases)
    assert value(metrics, "queue_depth") == 1
    assert value(metrics, "supervisors", phase="ACTIVE") == 1
    waiting.append("b")
    phases.update(ACTIVE=0.0, FAILED=1.0)
    assert value(metrics, "queue_depth") == 2
    assert value(metrics, "supervisors", phase="ACTIVE") == 0
    assert value(metrics, "supervisors", phase="FAILED") == 1


def test_phases_and_healths_nobody_has_are_zero_not_absent() -> None:
    metrics = Metrics("1")
    assert value(metrics, "supervisors", phase="TERMINATED") == 0
    assert value(metrics, "supervisors_health", health="UNRESPONSIVE") == 0


def test_watches_and_guards_are_named_by_whoever_has_them() -> None:
    metrics = Metrics("1")
    metrics.watch_age_seconds.set_function(lambda: {"pods": 1.5})
    metrics.guard_active.set_function(lambda: {"storm": 1})
    assert value(metrics, "watch_age_seconds", resource="pods") == 1.5
    assert value(metrics, "guard_active", guard="storm") == 1


def test_two_of_them_share_nothing_and_leave_the_global_registry_alone() -> None:
    one, other = Metrics("1"), Metrics("1")
    one.beats_total.inc()
    assert value(other, "beats_total") == 0
    assert b"supervisor_operator" not in prometheus_client.generate_latest()


def test_process_figures_are_there_and_everything_else_has_our_prefix() -> None:
    names = {name for name, _ in scrape(Metrics("1"))}
    assert "process_resident_memory_bytes" in names
    assert {name for name in names if not name.startswith("process_")} == {
        name for name in names if name.startswith("supervisor_operator_")
    }
