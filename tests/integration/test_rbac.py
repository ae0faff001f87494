"""The operator with its own token: what it does it may do, and what it may do it does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from supervisor_operator.api.v1alpha1.meta import GROUP
from tests.cluster.local import Cluster
from tests.cluster.places import CHECKOUT
from tests.cluster.ways import open_cluster
from tests.support.builders import AGENT, a_supervisor, a_team
from tests.support.install import ACCOUNT, MANIFESTS, NAMESPACE, install, operator_kubeconfig
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess
from tests.support.tokens import Agent

if TYPE_CHECKING:
    from tests.conftest import Tier

Right = tuple[str, str]
"""A verb, and a resource as RBAC writes it."""

OVERLAY = MANIFESTS / "overlays/cluster"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
FLAGS = ("--http-port=0", f"--lease-namespace={NAMESPACE}", "--node-grace-seconds=0")
END_SECONDS = 20
NONE = {"source": "None"}
NEVER_USED: dict[Right, str] = {
    ("patch", "heartbeats/status"): "held to be handed on to agents",
}
"""All that is granted and not used in a story that uses everything."""


@pytest.fixture(scope="module")
def audited(fake_tier: Tier) -> Iterator[Cluster]:
    """A cluster that writes down who asked for what, and what the answer was."""
    assert fake_tier.cluster().way == "local", "only a local cluster shows its audit log"
    with open_cluster("fake", audit=True) as cluster:
        install(cluster)
        yield cluster


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


def requests(cluster: Cluster, user: str) -> list[dict[str, Any]]:
    """All that one user asked for, from the audit log."""
    assert cluster.audit_log
    lines = Path(cluster.audit_log).read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return [entry for entry in found if entry["user"]["username"] == user]


def right_of(entry: dict[str, Any]) -> Right:
    what = entry["objectRef"]
    subresource = f"/{what['subresource']}" if "subresource" in what else ""
    return entry["verb"], what["resource"] + subresource


def granted() -> set[Right]:
    roles = [
        item
        for path in (MANIFESTS / "rbac").glob("*.yaml")
        for item in yaml.safe_load_all(path.read_text())
        if item["kind"] in {"Role", "ClusterRole"}
    ]
    return {
        (verb, resource)
        for role in roles
        for rule in role["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }


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


def pause_twice_and_stop(kubectl: Kubectl) -> None:
    """What is told a second time is counted in the Event that is there."""
    kubectl.create(a_supervisor("plain", heartbeat=NONE))
    kubectl.wait_status("plain", phase="ACTIVE")
    for _ in range(2):
        for mode, phase in (("Paused", "PAUSED"), ("Running", "ACTIVE")):
            kubectl.patch("plain", {"operatingMode": mode})
            kubectl.wait_status("plain", phase=phase)
    kubectl.patch("plain", {"operatingMode": "Stopped"})
    kubectl.wait_status("plain", phase="TERMINATED")


def find_a_name_taken(kubectl: Kubectl) -> None:
    kubectl("run", "taken-r1", "--image=localhost/stranger:1")
    kubectl.create(a_supervisor("taken", heartbeat=NONE))
    reason = "jsonpath={.status.conditions[?(@.type=='Stalled')].reason}=NameConflict"
    kubectl.wait("sup/taken", reason)


def run_a_team(kubectl: Kubectl) -> None:
    """Two members are made, one is edited by hand and put back, one leaves."""
    both = [{"name": name, "template": {"agent": AGENT, "heartbeat": NONE}} for name in "ab"]
    kubectl.create(a_team(members=both))
    kubectl.create(a_team("orphans", supervisorRef={"name": "ghost"}, members=both))
    kubectl.wait("supteam/crew", "jsonpath={.status.readySummary}=2/2")
    kubectl.patch("crew-a", {"description": "by hand"})
    kubectl.wait("sup/crew-a", "jsonpath={.metadata.generation}=3")
    fewer = json.dumps({"spec": {"members": both[:1]}})
    kubectl("patch", "supteam", "crew", "--type=merge", "-p", fewer)
    kubectl.wait("sup/crew-b", "delete")
    unresolved = "jsonpath={.status.conditions[?(@.type=='SupervisorResolved')].status}=False"
    kubectl.wait("supteam/orphans", unresolved)


def test_the_operator_needs_all_its_rights_and_no_more(audited: Cluster, tmp_path: Path) -> None:
    before, kubeconfig = len(requests(audited, USER)), operator_kubeconfig(audited, tmp_path)
    log = tmp_path / "log"
    with operator(kubeconfig, log) as process:
        live(Kubectl(audited, "default"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_SECONDS) == 0, log.read_text()
    looked = OperatorProcess(kubeconfig, tmp_path / "looked", "--namespace=default")
    looked.start().ready()
    assert looked.stop() == 0
    asked = requests(audited, USER)[before:]
    refused = [
        (entry["requestURI"], entry["responseStatus"])
        for entry in asked
        if entry["responseStatus"]["code"] in {401, 403}
    ]
    assert refused == []
    assert "forbidden" not in log.read_text() + looked.log
    used = {right_of(entry) for entry in asked if "resource" in entry.get("objectRef", {})}
    assert ("create", "pods") in used
    assert granted() - used == NEVER_USED.keys()


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
