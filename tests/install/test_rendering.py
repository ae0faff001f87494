"""Every way to install renders, both ways give the same objects, and the API server takes them."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.cluster.places import CHECKOUT
from tests.support.install import NAMESPACE
from tests.support.kubectl import Kubectl
from tests.support.rendering import (
    CHART,
    OVERLAYS,
    Json,
    Key,
    helm,
    kustomize,
    moved,
    ran,
    template,
)

OVERLAY_NAMES = sorted(path.name for path in OVERLAYS.iterdir())
AGENTS = "supervised-agents"
NOT_THE_CLUSTERS = ("crds=false", "policies=false", "roles=false")
KEEP = "helm.sh/resource-policy"
CLUSTER_KINDS = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace"}
SAME = {
    "cluster": (NAMESPACE, (), ("cluster",)),
    "ha": (NAMESPACE, ("replicas=2",), ("ha",)),
    "namespaced": (AGENTS, ("scope=namespaced", *NOT_THE_CLUSTERS), ("namespaced",)),
    "namespaced with all": (AGENTS, ("scope=namespaced",), ("cluster-parts", "namespaced")),
}
"""A way to install: the chart's namespace and values, and the overlays with the same result."""
NOT_OURS = {
    "access-to-create-pods": "to make the agents' pods is what the operator is for",
    "minimum-three-replicas": "one is the default on purpose; overlay ha has two",
    "no-node-affinity": "it may run on any node",
    "no-rolling-update-strategy": "that is the default of a Deployment",
    "restart-policy": "the same",
    "dnsconfig-options": "it asks for one name, that of the API server",
    "required-annotation-email": "a word of the house that installs it",
    "required-label-owner": "the same",
    "schema-validation": "it asks the internet for schemas; here the API server takes each object",
}
"""Advice of kube-linter that we do not follow, and why."""


def without_namespace(items: dict[Key, Json]) -> dict[Key, Json]:
    """Helm makes the namespace by a flag, so that it is none of the chart's objects."""
    return {key: item for key, item in items.items() if key[0] != "Namespace"}


def taken_out(items: dict[Key, Json]) -> list[Key]:
    """Take the mark off the CRDs that a removed release leaves behind; which had it."""
    marked = [key for key, item in items.items() if KEEP in item["metadata"].get("annotations", {})]
    for key in marked:
        metadata = items[key]["metadata"]
        assert metadata["annotations"].pop(KEEP) == "keep"
        if not metadata["annotations"]:
            del metadata["annotations"]
    return marked


@pytest.mark.parametrize("way", SAME)
def test_helm_and_kustomize_give_the_same_objects(way: str) -> None:
    namespace, settings, overlays = SAME[way]
    wanted: dict[Key, Json] = {}
    for overlay in overlays:
        wanted |= kustomize(overlay)
    got = helm(namespace, *settings)
    marked = taken_out(got)
    assert {kind for kind, *_ in marked} <= {"CustomResourceDefinition"}
    assert len(marked) == sum(kind == "CustomResourceDefinition" for kind, *_ in got)
    assert got == without_namespace(wanted)


def test_every_overlay_has_its_way_by_helm() -> None:
    assert {name for *_, names in SAME.values() for name in names} == set(OVERLAY_NAMES)


@pytest.mark.parametrize("overlay", OVERLAY_NAMES)
def test_the_api_server_takes_each_overlay_without_a_word(kubectl: Kubectl, overlay: str) -> None:
    for mode in ("enforce", "warn"):
        label = f"pod-security.kubernetes.io/{mode}=restricted"
        kubectl("label", "namespace", kubectl.namespace, label)
    items = without_namespace(kustomize(overlay))
    answer = kubectl(
        *("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-"),
        stdin=moved(items, kubectl.namespace),
    )
    assert answer.err == ""
    assert answer.out.count("serverside-applied (server dry run)") == len(items)


def test_a_namespaced_install_stays_in_its_namespace() -> None:
    for kind, namespace, name in kustomize("namespaced"):
        assert namespace == AGENTS, f"{kind} {name}"
        assert kind not in CLUSTER_KINDS


def test_two_replicas_come_with_a_disruption_budget() -> None:
    items = kustomize("ha")
    assert items["Deployment", NAMESPACE, "supervisor-operator"]["spec"]["replicas"] == 2
    budget = items["PodDisruptionBudget", NAMESPACE, "supervisor-operator"]["spec"]
    template = items["Deployment", NAMESPACE, "supervisor-operator"]["spec"]["template"]
    assert budget["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert not [kind for kind, *_ in kustomize("cluster") if kind == "PodDisruptionBudget"]


def container(items: dict[Key, Json]) -> Json:
    deployment = items["Deployment", NAMESPACE, "supervisor-operator"]
    found: Json = deployment["spec"]["template"]["spec"]["containers"][0]
    return found


def test_values_reach_the_operator() -> None:
    settings = ("image=localhost/ours:7", "resources.limits.memory=1Gi", "metrics.service=false")
    items = helm(NAMESPACE, *settings, "networkPolicy=false")
    found = container(items)
    relay = {variable["name"]: variable.get("value") for variable in found["env"]}
    assert found["image"] == relay["SUPERVISOR_OPERATOR_RELAY_IMAGE"] == "localhost/ours:7"
    assert found["resources"]["limits"] == {"memory": "1Gi"}
    assert not {"Service", "NetworkPolicy"} & {kind for kind, *_ in items}
    other = container(helm(NAMESPACE, "image=localhost/ours:7", "relayImage=localhost/relay:3"))
    assert other["env"][0]["value"] == "localhost/relay:3"


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("scope=galaxy", "scope"),
        ("replicas=many", "replicas"),
        ("image=", "image"),
        ("imagePullPolicy=Always", "imagePullPolicy"),
    ],
)
def test_a_wrong_value_is_refused_by_name(setting: str, words: str) -> None:
    done = template(NAMESPACE, setting)
    assert done.returncode
    assert "values don't meet the specifications" in done.stderr
    assert words in done.stderr


def test_helm_finds_no_fault_in_the_chart() -> None:
    done = ran("helm", "lint", "--strict", str(CHART), check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("folder", [*OVERLAY_NAMES, "../api"])
def test_kube_linter_finds_no_fault(folder: str) -> None:
    text = ran("kubectl", "kustomize", str(OVERLAYS / folder)).stdout
    ignored = ",".join(NOT_OURS)
    done = ran(
        *("kube-linter", "lint", "--add-all-built-in", f"--exclude={ignored}", "--format=json"),
        "-",
        stdin=text,
        check=False,
    )
    faults = [
        f"{one['Object']['K8sObject']['Name']}: {one['Check']}: {one['Diagnostic']['Message']}"
        for one in json.loads(done.stdout)["Reports"] or ()
    ]
    assert faults == []


def test_kube_linter_finds_what_is_wrong() -> None:
    """Else it would be clean for not having looked."""
    privileged = kustomize("cluster")["Deployment", NAMESPACE, "supervisor-operator"]
    container = privileged["spec"]["template"]["spec"]["containers"][0]
    container["securityContext"] = {"privileged": True}
    done = ran("kube-linter", "lint", "-", stdin=json.dumps(privileged), check=False)
    assert done.returncode
    assert "privileged-container" in done.stdout


def test_the_chart_is_made_from_the_manifests() -> None:
    done = subprocess.run(
        ["make", "-s", "manifests-check"], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
