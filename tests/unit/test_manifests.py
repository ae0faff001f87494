"""The manifests as files: complete, least privilege, and in the operator's own words."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from supervisor_operator.api.v1alpha1.meta import GROUP
from supervisor_operator.kube.rights import NAME, POLICY_NAME, RULES
from supervisor_operator.settings import Settings

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "manifests"
KUSTOMIZATIONS = sorted(
    path
    for folder in ("crds", "manifests")
    for path in (ROOT / folder).rglob("[Kk]ustomization*")
    if "agents" not in path.parts
)
FORBIDDEN_VERBS = {"*", "escalate", "bind", "impersonate", "deletecollection", "beat-for-others"}
FORBIDDEN_RESOURCES = {
    "*",
    "secrets",
    "configmaps",
    "serviceaccounts",
    "serviceaccounts/token",
    "pods/exec",
    "pods/attach",
    "pods/portforward",
    "pods/log",
    "pods/ephemeralcontainers",
    "nodes/proxy",
}
Rule = dict[str, list[str]]


def documents(folder: str) -> list[dict[str, Any]]:
    paths = sorted((MANIFESTS / folder).glob("*.yaml"))
    return [
        item
        for path in paths
        if path.name != "kustomization.yaml"
        for item in yaml.safe_load_all(path.read_text())
    ]


def of_kind(folder: str, *kinds: str) -> list[dict[str, Any]]:
    return [item for item in documents(folder) if item["kind"] in kinds]


def rules() -> list[Rule]:
    return [rule for role in of_kind("rbac", "Role", "ClusterRole") for rule in role["rules"]]


def rights(rule: Rule) -> Iterator[tuple[str, str, str]]:
    """Each verb, group and resource that a rule without names allows."""
    if "resourceNames" not in rule:
        for verb in rule["verbs"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    yield verb, group, resource


def deployment() -> dict[str, Any]:
    (found,) = of_kind("base", "Deployment")
    return found


def container() -> dict[str, Any]:
    (found,) = deployment()["spec"]["template"]["spec"]["containers"]
    return dict(found)


@pytest.mark.parametrize("path", KUSTOMIZATIONS, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_kustomization_lists_all_files_beside_it(path: Path) -> None:
    listed = [name for name in yaml.safe_load(path.read_text())["resources"] if "../" not in name]
    beside = [one.name for one in path.parent.glob("*.yaml") if one.name != path.name]
    assert sorted(listed) == sorted(beside)


def test_there_are_kustomizations() -> None:
    """Two overlays or bases that lost their file would pass the test above."""
    folders = {str(path.parent.relative_to(ROOT)) for path in KUSTOMIZATIONS}
    assert folders >= {
        "crds",
        "manifests/base",
        "manifests/overlays/cluster",
        "manifests/overlays/cluster-parts",
        "manifests/overlays/ha",
        "manifests/overlays/namespaced",
        "manifests/policies",
        "manifests/rbac",
        "manifests/roles",
    }


def test_the_operator_holds_no_dangerous_right() -> None:
    assert len(rules()) > 5
    for rule in rules():
        assert not FORBIDDEN_VERBS & set(rule["verbs"]), rule
        assert not FORBIDDEN_RESOURCES & set(rule["resources"]), rule
        assert "*" not in rule["apiGroups"], rule
        assert "nonResourceURLs" not in rule, rule


@pytest.mark.parametrize(
    ("resource", "verbs"),
    [
        ("supervisorteams", {"get", "list", "watch"}),
        # Those of team members are made, put back and removed; none is ever patched.
        ("supervisors", {"get", "list", "watch", "create", "update", "delete"}),
    ],
)
def test_the_operator_writes_custom_objects_only_for_teams(resource: str, verbs: set[str]) -> None:
    held = {right for rule in rules() for right in rights(rule)}
    assert {verb for verb, group, one in held if (group, one) == (GROUP, resource)} == verbs


def test_all_that_is_handed_on_to_agents_is_held() -> None:
    """Else the API server refuses the Role that the operator makes for them."""
    held = {right for rule in rules() for right in rights(rule)}
    handed_on = {right for rule in RULES for right in rights(rule)}
    assert handed_on == {
        ("get", "supervision.dev", "heartbeats"),
        ("patch", "supervision.dev", "heartbeats/status"),
    }
    assert handed_on <= held


def test_rights_by_name_are_for_the_names_in_the_code() -> None:
    named = {
        resource: set(rule["resourceNames"])
        for rule in rules()
        if "resourceNames" in rule
        for resource in rule["resources"]
    }
    assert named == {
        "roles": {NAME},
        "rolebindings": {NAME},
        "validatingadmissionpolicies": {POLICY_NAME},
        "validatingadmissionpolicybindings": {POLICY_NAME},
    }


def test_each_role_is_bound_to_the_operators_account_alone() -> None:
    roles = {(item["kind"], item["metadata"]["name"]) for item in of_kind("rbac", "Role")}
    roles |= {(item["kind"], item["metadata"]["name"]) for item in of_kind("rbac", "ClusterRole")}
    bindings = of_kind("rbac", "RoleBinding", "ClusterRoleBinding")
    account = {
        "kind": "ServiceAccount",
        "name": "supervisor-operator",
        "namespace": "supervision-system",
    }
    assert {(one["roleRef"]["kind"], one["roleRef"]["name"]) for one in bindings} == roles
    assert all(one["subjects"] == [account] for one in bindings)


def test_policies_refuse_when_in_doubt_and_each_is_bound() -> None:
    policies = {
        one["metadata"]["name"]: one for one in of_kind("policies", "ValidatingAdmissionPolicy")
    }
    bindings = {
        one["metadata"]["name"]: one
        for one in of_kind("policies", "ValidatingAdmissionPolicyBinding")
    }
    assert policies.keys() == bindings.keys() == {POLICY_NAME, "supervision-supervisors"}
    for name, policy in policies.items():
        assert policy["spec"]["failurePolicy"] == "Fail"
        assert bindings[name]["spec"] == {"policyName": name, "validationActions": ["Deny"]}


def test_the_operator_understands_its_arguments_and_probes_reach_it() -> None:
    variables = {one["name"]: one.get("value", "from-the-pod") for one in container()["env"]}
    settings = Settings.from_args(container()["args"], variables)
    (port,) = container()["ports"]
    assert settings.http_host == "0.0.0.0"  # noqa: S104 - in a pod, for the kubelet
    assert settings.http_port == port["containerPort"] == 8080
    assert settings.relay_image == container()["image"]
    assert settings.identity == "from-the-pod"
    probes = {name: container()[f"{name}Probe"]["httpGet"] for name in ("liveness", "readiness")}
    assert probes["liveness"] == {"path": "/healthz", "port": port["name"]}
    assert probes["readiness"] == {"path": "/readyz", "port": port["name"]}


def test_the_service_finds_the_metrics() -> None:
    (service,) = of_kind("base", "Service")
    template = deployment()["spec"]["template"]
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] == container()["ports"][0]["name"]


def test_the_chart_has_the_version_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((MANIFESTS / "chart/Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == project["version"]


def test_people_may_not_write_what_the_operator_says() -> None:
    granted = {
        right
        for role in of_kind("roles", "ClusterRole")
        for rule in role["rules"]
        for right in rights(rule)
    }
    assert {resource for _, _, resource in granted} == {
        "supervisors",
        "supervisorteams",
        "heartbeats",
    }
    assert {verb for verb, _, resource in granted if resource == "heartbeats"} == {
        "get",
        "list",
        "watch",
    }
