"""The operator with its own token: what it does it may do, and what it may do it does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from supervisor_operator.api.v1alpha1.meta import GROUP
from tests.cluster.local import Cluster
from tests.cluster.places import CHECKOUT
from tests.support.audit import USER, AuditLog, Right, denied, granted, used
from tests.support.builders import a_supervisor
from tests.support.duties import find_a_name_taken, pause_twice_and_stop, run_a_team
from tests.support.install import MANIFESTS, NAMESPACE, operator_kubeconfig
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess
from tests.support.tokens import Agent

OVERLAY = MANIFESTS / "overlays/cluster"
FLAGS = ("--http-port=0", f"--lease-namespace={NAMESPACE}", "--node-grace-seconds=0")
END_SECONDS = 20
NEVER_USED: dict[Right, str] = {
    ("patch", "heartbeats/status"): "held to be handed on to agents",
}
"""All that is granted and not used in a story that uses everything."""


@contextmanager
def operator(kubeconfig: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "supervisor_operator", f"--kubeconfig={kubeconfig}", *FLAGS]
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT / "operator")}
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def live(kubectl: Kubectl) -> None:
    """All that can happen to agents, so that every right is needed once."""
    fall_silent(kubectl)
    pause_twice_and_stop(kubectl)
    find_a_name_taken(kubectl)
    run_a_team(kubectl)


def fall_silent(kubectl: Kubectl) -> None:
    """An agent beats, hangs, is ended and started anew."""
    beats = {"intervalSeconds": 1, "missedThreshold": 1}
    kubectl.create(a_supervisor("hello", heartbeat=beats, restart={"delaySeconds": 1}))
    kubectl.wait("heartbeat/hello-r1", "create")
    with Agent.of(kubectl, kubectl.get("pod", "hello-r1")) as agent:
        assert agent.beat().status == 200
    kubectl.wait("pod/hello-r1", "jsonpath={.status.reason}=DeadlineExceeded")
    kubectl.wait("heartbeat/hello-r2", "create")
    kubectl.wait("heartbeat/hello-r1", "delete")


def test_the_operator_needs_all_its_rights_and_no_more(audited: Cluster, tmp_path: Path) -> None:
    asked, kubeconfig = AuditLog(audited), operator_kubeconfig(audited, tmp_path)
    log = tmp_path / "log"
    with operator(kubeconfig, log) as process:
        live(Kubectl(audited, "default"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_SECONDS) == 0, log.read_text()
    looked = OperatorProcess(kubeconfig, tmp_path / "looked", "--namespace=default")
    looked.start().ready()
    assert looked.stop() == 0
    entries = asked.entries()
    assert denied(entries) == []
    assert "is forbidden: User" not in log.read_text() + looked.log, "the words of RBAC"
    assert ("create", "pods") in used(entries)
    assert granted() - used(entries) == NEVER_USED.keys()


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("get", "secrets"),
        ("list", "secrets"),
        ("create", "pods/exec"),
        ("get", "pods/log"),
        ("update", f"supervisorteams.{GROUP}"),
        ("patch", f"supervisors.{GROUP}"),
        ("update", f"heartbeats.{GROUP}"),
        ("beat-for-others", f"heartbeats.{GROUP}"),
        ("escalate", "roles"),
        ("bind", "roles"),
        ("update", "roles"),
        ("impersonate", "users"),
        ("list", "customresourcedefinitions"),
        ("list", "namespaces"),
        ("update", "leases"),
    ],
)
def test_the_operator_may_not(audited: Cluster, verb: str, resource: str) -> None:
    """Asked in a namespace of agents; Leases are the operator's only in its own."""
    plain, _, subresource = resource.partition("/")
    words = [verb, plain, *([f"--subresource={subresource}"] if subresource else [])]
    answer = Kubectl(audited, "default").ask("auth", "can-i", *words, f"--as={USER}")
    assert answer.out.strip() == "no", answer


def rendered(cluster: Cluster) -> list[dict[str, Any]]:
    text = Kubectl(cluster, NAMESPACE)("kustomize", str(OVERLAY)).out
    return list(yaml.safe_load_all(text))


def test_the_overlay_renders_in_the_order_of_installation(audited: Cluster) -> None:
    kinds = [item["kind"] for item in rendered(audited)]
    assert kinds[:3] == ["CustomResourceDefinition"] * 3
    assert kinds[-1] == "Deployment"
    last_policy = kinds[::-1].index("ValidatingAdmissionPolicyBinding")
    assert len(kinds) - last_policy - 1 < kinds.index("Namespace") < kinds.index("ServiceAccount")


def test_the_server_takes_the_overlay_and_the_namespace_takes_the_pod(audited: Cluster) -> None:
    kubectl = Kubectl(audited, NAMESPACE)
    answer = kubectl("apply", "--server-side", "--dry-run=server", "-k", str(OVERLAY))
    assert "deployment.apps/supervisor-operator serverside-applied" in answer.out
    template = rendered(audited)[-1]["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    pod["metadata"] = template["metadata"] | {"name": "operator"}
    kubectl("create", "--dry-run=server", "-f", "-", stdin=pod)
    pod["spec"] = template["spec"] | {"hostNetwork": True}
    refused = kubectl.ask("create", "--dry-run=server", "-f", "-", stdin=pod)
    assert 'violates PodSecurity "restricted' in refused.err


def test_the_relay_has_the_operators_image(audited: Cluster, tmp_path: Path) -> None:
    relative = os.path.relpath(OVERLAY, tmp_path)
    image = {"name": "localhost/supervisor-operator", "newName": "localhost/ours", "newTag": "7"}
    own = yaml.safe_load((OVERLAY / "kustomization.yaml").read_text()) | {"images": [image]}
    own["resources"] = [f"{relative}/../../base"]
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(own))
    text = Kubectl(audited, NAMESPACE)("kustomize", str(tmp_path)).out
    (container,) = list(yaml.safe_load_all(text))[-1]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == container["env"][0]["value"] == "localhost/ours:7"
