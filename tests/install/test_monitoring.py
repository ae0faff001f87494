"""Alerts, dashboard and k9s views: each speaks of what is really there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

from supervisor_operator.api.v1alpha1.kinds import KINDS
from supervisor_operator.telemetry.metrics import LiveGauge, Metrics
from tests.cluster.packages import unpacked
from tests.cluster.places import CHECKOUT

MANIFESTS = CHECKOUT / "manifests"
MONITORING = MANIFESTS / "monitoring"
RULES = yaml.safe_load((MONITORING / "rules.yaml").read_text())["spec"]
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
CASES = Path(__file__).parent / "rules_test.yaml"
NAME = re.compile(r"\b(?:supervisor_operator|process)_\w+")
SELECTED = re.compile(r"(supervisor_operator_\w+)\{([^}]*)\}")
OF_THE_SCRAPE = {"namespace", "pod", "job", "le"}


def promtool(*words: str, folder: Path) -> str:
    done = subprocess.run(
        [unpacked("promtool"), *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


SUFFIXES = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}


def plain(name: str) -> str:
    return re.sub("_(bucket|sum|count|total)$", "", name)


def samples() -> dict[str, set[str]]:
    """Name of every sample that the operator serves, and its labels."""
    metrics = Metrics("1")
    labels = {}
    for one in vars(metrics).values():
        if isinstance(one, LiveGauge):
            labels[one._family[0]] = {one._label}
        elif isinstance(one, MetricWrapperBase):
            labels[one._name] = set(one._labelnames)
    return {
        family.name + suffix: labels.get(family.name, set())
        | {label for sample in family.samples for label in sample.labels}
        for family in metrics.registry.collect()
        for suffix in SUFFIXES.get(family.type, [""])
    }


def test_promtool_raises_each_alert_and_keeps_each_still(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(RULES))
    shutil.copy(CASES, tmp_path)
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", "rules.yml", folder=tmp_path)
    assert "SUCCESS" in promtool("test", "rules", CASES.name, folder=tmp_path)


def test_every_alert_is_raised_once_by_the_cases() -> None:
    raised = {
        case["alertname"]
        for test in yaml.safe_load(CASES.read_text())["tests"]
        for case in test.get("alert_rule_test", ())
        if case.get("exp_alerts")
    }
    assert raised == {rule["alert"] for rule in ALERTS}


def test_every_alert_has_its_runbook() -> None:
    text = (CHECKOUT / "docs/operations/alerts.md").read_text()
    headings = re.findall(r"^## (\w+)$", text, re.MULTILINE)
    assert headings == [rule["alert"] for rule in ALERTS]
    for rule in ALERTS:
        anchor = rule["alert"].lower()
        assert rule["annotations"]["runbook"] == f"docs/operations/alerts.md#{anchor}"
        assert rule["labels"]["severity"] in {"critical", "warning"}


@pytest.mark.parametrize("query", QUERIES + [rule["expr"] for rule in ALERTS])
def test_a_query_names_metrics_and_labels_that_exist(query: str) -> None:
    there = samples()
    named = NAME.findall(query)
    assert named
    assert set(named) <= there.keys()
    labels = {word for group in re.findall(r"by \(([^)]*)\)", query) for word in group.split(", ")}
    known = OF_THE_SCRAPE.union(*(there[name] for name in named))
    assert labels <= known
    for name, chosen in SELECTED.findall(query):
        assert set(re.findall(r"(\w+)[=!]", chosen)) <= there[name] | OF_THE_SCRAPE


def test_promtool_understands_the_dashboard(tmp_path: Path) -> None:
    rules = [{"record": f"panel:q{at}", "expr": query} for at, query in enumerate(QUERIES)]
    text = yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]})
    (tmp_path / "queries.yml").write_text(text)
    said = promtool("check", "rules", "queries.yml", folder=tmp_path)
    assert f"{len(QUERIES)} rules found" in said


def test_every_metric_of_ours_is_on_the_dashboard() -> None:
    shown = {plain(name) for query in QUERIES for name in NAME.findall(query)}
    ours = {plain(name) for name in samples() if not name.startswith("process_")}
    assert ours <= shown


def test_k9s_shows_columns_that_the_kinds_have() -> None:
    views: dict[str, Any] = yaml.safe_load((MANIFESTS / "k9s/views.yaml").read_text())["views"]
    for kind in KINDS:
        view = views.pop(f"supervision.dev/v1alpha1/{kind.plural}")
        there = {column.name.upper() for column in kind.columns} | {"NAME", "NAMESPACE", "AGE"}
        assert set(view["columns"]) <= there
    assert views == {}
