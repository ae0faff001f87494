"""`make up` on somebody's cluster: it looks first, asks, and on any doubt changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from supervisor_operator.api.v1alpha1.kinds import KINDS, SUPERVISOR
from supervisor_operator.crdgen.crd import build_crd
from tests.cluster.local import Cluster
from tests.cluster.places import CHECKOUT
from tests.cluster.ways import open_cluster
from tests.conftest import Tier
from tests.integration.test_process import a_server_of_version
from tests.support.builders import a_supervisor
from tests.support.install import MANIFESTS, NAMESPACE
from tests.support.kubeconfig import write_plain_kubeconfig
from tests.support.kubectl import Kubectl
from tests.support.rendering import CHART, RELEASE, ran
from tests.support.tokens import view_kubeconfig

IMAGE = "registry.example/supervisor-operator:1"
RBAC = "rbac.authorization.k8s.io/v1"
POLICY = "validatingadmissionpolicybinding/supervision-heartbeats"


@pytest.fixture(scope="module")
def theirs(fake_tier: Tier) -> Iterator[Kubectl]:
    """A cluster that belongs to somebody else."""
    assert fake_tier.cluster().way == "local", "never install on a borrowed cluster"
    with open_cluster("fake") as cluster:
        yield Kubectl(cluster, "default")


def make_up(kubeconfig: str, answer: str = "", image: str = IMAGE) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.showcase", "up"],
        cwd=CHECKOUT,
        env=os.environ | {"KUBECONFIG": kubeconfig, "IMAGE": image},
        input=answer,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def refusal(kubeconfig: str, answer: str = "", image: str = IMAGE) -> str:
    code, said = make_up(kubeconfig, answer, image)
    assert code == 1
    (line,) = said.splitlines()
    return line


def untouched(cluster: Cluster) -> bool:
    found = Kubectl(cluster, NAMESPACE)("get", "deployments,clusterroles", "-o", "name").out
    return "clusterrole" in found and "supervis" not in found


def test_nobody_answers(tmp_path: Path) -> None:
    kubeconfig = write_plain_kubeconfig(tmp_path / "config", "http://127.0.0.1:9")
    line = refusal(str(kubeconfig))
    assert line.startswith(f"make up: no API server answers by KUBECONFIG={kubeconfig}: ")
    assert "no API server answers" in refusal(str(tmp_path / "nothing"))


def test_an_old_server(tmp_path: Path) -> None:
    with a_server_of_version("1", "31+") as url:
        line = refusal(str(write_plain_kubeconfig(tmp_path / "config", url)))
    assert line == (
        "make up: the API server is Kubernetes 1.31, 1.32 or newer is needed: upgrade the cluster"
    )


def test_somebody_who_may_only_look(theirs: Kubectl, tmp_path: Path) -> None:
    theirs("create", "serviceaccount", "guest")
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}
    look = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "look"}}
    theirs.create(look | {"rules": [rule]})
    whom = ("--clusterrole=look", "--serviceaccount=default:guest")
    theirs("create", "clusterrolebinding", "look", *whom)
    config = view_kubeconfig(theirs)
    config["users"][0]["user"] = {"token": theirs("create", "token", "guest").out.strip()}
    (tmp_path / "config").write_text(json.dumps(config))
    line = refusal(str(tmp_path / "config"))
    assert line.startswith("make up: you may not create namespaces, customresourcedefinitions, ")
    assert untouched(theirs.cluster)


def test_a_namespace_of_somebody_else(theirs: Kubectl) -> None:
    theirs("create", "namespace", NAMESPACE)
    line = refusal(theirs.cluster.kubeconfig)
    assert line.startswith(f"make up: namespace {NAMESPACE} is there and not ours")
    assert untouched(theirs.cluster)
    theirs("label", "namespace", NAMESPACE, "app.kubernetes.io/part-of=supervisor-operator")


def test_policies_that_are_half_there(theirs: Kubectl) -> None:
    theirs("apply", "--server-side", "-k", str(MANIFESTS / "policies"))
    theirs("delete", POLICY)
    line = refusal(theirs.cluster.kubeconfig)
    assert "ValidatingAdmissionPolicyBinding supervision-heartbeats is missing" in line
    assert untouched(theirs.cluster)
    theirs("apply", "--server-side", "-k", str(MANIFESTS / "policies"))


def test_crds_of_a_newer_version(theirs: Kubectl) -> None:
    newer = build_crd(SUPERVISOR)
    schema = newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    schema["properties"]["futureField"] = {"type": "string", "description": "From the future."}
    theirs("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=newer)
    line = refusal(theirs.cluster.kubeconfig)
    assert "CRD supervisors.supervision.dev there is newer" in line
    assert "spec.futureField" in line
    assert untouched(theirs.cluster)
    ours = yaml.safe_dump(build_crd(SUPERVISOR))
    theirs("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=ours)


def test_no_image_that_the_cluster_could_pull(theirs: Kubectl) -> None:
    assert "make up IMAGE=" in refusal(theirs.cluster.kubeconfig, image="")


@pytest.mark.parametrize("answer", ["", "n\n", "what?\n"])
def test_who_does_not_say_yes_gets_nothing(theirs: Kubectl, answer: str) -> None:
    line = refusal(theirs.cluster.kubeconfig, answer)
    assert line.startswith(f"Install supervisor-operator ({IMAGE}) on https://127.0.0.1:")
    assert line.endswith("nothing was installed; unset KUBECONFIG to have a local cluster")
    assert untouched(theirs.cluster)


def test_who_says_yes_gets_an_operator_of_that_image(theirs: Kubectl) -> None:
    """Pods of the fake nodes are ready at once."""
    code, said = make_up(theirs.cluster.kubeconfig, "y\n")
    assert code == 0, said
    operator = Kubectl(theirs.cluster, NAMESPACE).get("deployment", "supervisor-operator")
    assert operator["status"]["readyReplicas"] == 1
    (container,) = operator["spec"]["template"]["spec"]["containers"]
    assert container["image"] == container["env"][0]["value"] == IMAGE


def test_helm_takes_over_what_is_there_and_leaves_crds_and_agents_behind(theirs: Kubectl) -> None:
    """The last test: the operator is gone after it."""
    where = (f"--kubeconfig={theirs.cluster.kubeconfig}", f"--namespace={NAMESPACE}")
    ran("helm", "install", RELEASE, str(CHART), *where, "--take-ownership", f"--set=image={IMAGE}")
    operator = Kubectl(theirs.cluster, NAMESPACE).get("deployment", "supervisor-operator")
    assert operator["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    theirs.create(a_supervisor())
    ran("helm", "upgrade", RELEASE, str(CHART), *where, "--set=replicas=2", f"--set=image={IMAGE}")
    ran("helm", "uninstall", RELEASE, *where)
    assert theirs.get("sup", "hello")["spec"]["agent"]
    assert len(theirs.names("crds")) == len(KINDS)
    assert Kubectl(theirs.cluster, NAMESPACE).names("deployments") == []
