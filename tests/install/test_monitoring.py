"""Metrics, alerts, dashboard and k9s views: each speaks of what is really there."""

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
from supervisor_operator.api.v1alpha1.meta import Phase
from supervisor_operator.api.v1alpha1.supervisor import SupervisorSpec
from supervisor_operator.api.v1alpha1.team import TeamSpec
from supervisor_operator.telemetry.metrics import LiveGauge, Metrics
from tests.cluster.packages import unpacked
from tests.cluster.places import CHECKOUT
from tests.support.builders import AGENT, a_team
from tests.support.fleet import beating
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess

MANIFESTS = CHECKOUT / "manifests"
MONITORING = MANIFESTS / "monitoring"
RULES = yaml.safe_load((MONITORING / "rules.yaml").read_text())["spec"]
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
CASES = Path(__file__).parent / "rules_test.yaml"
NAME = re.compile(r"\b(?:supervisor_operator|process)_\w+")
SELECTED = re.compile(r"(supervisor_operator_\w+)\{([^}]*)\}")
PAGE = CHECKOUT / "docs/operations/metrics.md"
PREFIX = "supervisor_operator_"
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


def described() -> dict[str, tuple[str, set[str]]]:
    """Type and labels of each metric, as the page has them."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|([^|]*)\|", PAGE.read_text(), re.MULTILINE)
    return {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


def test_the_page_has_every_metric_with_its_type_and_labels() -> None:
    there = samples()
    served = {}
    for family in Metrics("1").registry.collect():
        name = family.name + ("_total" if family.type == "counter" else "")
        if name.startswith(PREFIX):
            one = name + ("_count" if family.type == "histogram" else "")
            served[name.removeprefix(PREFIX)] = (family.type, there[one] - {"le"})
    assert described() == served


def test_a_living_operator_has_a_value_for_every_metric_of_the_page(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    beats = {"intervalSeconds": 1, "missedThreshold": 0}
    template = {"agent": AGENT, "heartbeat": beats, "restart": {"delaySeconds": 1}}
    fake_kubectl.create(a_team(members=[{"name": "member", "template": template}]))
    fake_kubectl.wait("heartbeat/crew-member-r1", "create")
    with beating(fake_kubectl, ["crew-member-r1"], 0.3) as fleet:
        fake_kubectl.wait_status("crew-member", phase="ACTIVE")
        fleet.freeze("crew-member-r1")
        fake_kubectl.wait("pod/crew-member-r2", "create")
    values: dict[str, float] = {}

    def is_complete() -> bool:
        for line in operator.get("/metrics").splitlines():
            if line.startswith(PREFIX):
                name, value = line.removeprefix(PREFIX).rsplit(" ", 1)
                plain_name = re.sub(r"(_count)?({.*)?$", "", name)
                values[plain_name] = max(float(value), values.get(plain_name, 0.0))
                values[name] = float(value)
        return described().keys() <= values.keys()

    operator.until(is_complete)
    counted = [name for name, (kind, _) in described().items() if kind in ("counter", "histogram")]
    assert [name for name in counted if not values[name]] == []
    assert values['reconcile_total{kind="SupervisorTeam",result="ok"}'] > 0
    assert values['restarts_total{reason="Unresponsive"}'] == 1
    assert sum(values[f'supervisors{{phase="{phase}"}}'] for phase in Phase) == 1


def test_k9s_shows_columns_that_the_kinds_have() -> None:
    views: dict[str, Any] = yaml.safe_load((MANIFESTS / "k9s/views.yaml").read_text())["views"]
    for kind in KINDS:
        view = views.pop(f"supervision.dev/v1alpha1/{kind.plural}")
        there = {column.name.upper() for column in kind.columns} | {"NAME", "NAMESPACE", "AGE"}
        assert set(view["columns"]) <= there
    assert views == {}


def test_k9s_orders_what_the_kinds_understand() -> None:
    plugins = yaml.safe_load((MANIFESTS / "k9s/plugins.yaml").read_text())["plugins"]
    orders = {
        name: json.loads(plugin["args"][plugin["args"].index("-p") + 1])["spec"]
        for name, plugin in plugins.items()
        if "-p" in plugin["args"]
    }
    assert set(orders) == {"supervision-pause", "supervision-resume"}
    for spec in orders.values():
        for kind in (SupervisorSpec, TeamSpec):
            kind.model_validate(spec)
    kinds = {kind.plural for kind in KINDS}
    assert all(set(plugin["scopes"]) <= kinds for plugin in plugins.values())
