"""The manifests of the API: it only looks, it is off by default, it understands its flags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from supervisor_api.settings import read_settings
from supervisor_operator.api.v1alpha1.kinds import KINDS
from supervisor_operator.api.v1alpha1.meta import GROUP

MANIFESTS = Path(__file__).parents[3] / "manifests"


def documents() -> dict[str, dict[str, Any]]:
    found = [
        item
        for path in sorted((MANIFESTS / "api").glob("*.yaml"))
        for item in yaml.safe_load_all(path.read_text())
    ]
    return {item["kind"]: item for item in found}


def container() -> dict[str, Any]:
    (found,) = documents()["Deployment"]["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_its_account_may_only_look_at_our_kinds() -> None:
    (rule,) = documents()["ClusterRole"]["rules"]
    assert rule["apiGroups"] == [GROUP]
    assert set(rule["resources"]) == {kind.plural for kind in KINDS}
    assert rule["verbs"] == ["get", "list", "watch"]
    account = documents()["ServiceAccount"]["metadata"]
    (subject,) = documents()["ClusterRoleBinding"]["subjects"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
    pod = documents()["Deployment"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == account["name"]


def test_it_is_off_in_the_plain_install() -> None:
    for path in MANIFESTS.rglob("[Kk]ustomization*"):
        resources = yaml.safe_load(path.read_text()).get("resources") or []
        if path.parent.name != "api":
            assert not any(word.rstrip("/").endswith("/api") for word in resources), path


def test_it_understands_its_flags_and_probes_reach_it() -> None:
    settings = read_settings(container()["args"])
    (port,) = container()["ports"]
    assert settings.port == port["containerPort"]
    for name in ("liveness", "readiness"):
        assert container()[f"{name}Probe"]["httpGet"]["port"] == port["name"]
    (service_port,) = documents()["Service"]["spec"]["ports"]
    assert service_port["targetPort"] == port["name"]
    assert documents()["Service"]["spec"].get("type", "ClusterIP") == "ClusterIP"


def test_tokens_travel_in_the_clear_only_where_somebody_said_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert read_settings(["--host=127.0.0.1"]).host == "127.0.0.1"
    with pytest.raises(SystemExit):
        read_settings(["--host=0.0.0.0"])
    assert "give --tls-cert and --tls-key" in capsys.readouterr().err
    assert read_settings(["--host=0.0.0.0", "--plain-http"]).plain_http
    with pytest.raises(SystemExit):
        read_settings([f"--tls-cert={__file__}"])
