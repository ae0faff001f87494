"""The installed rights at work: an operator of one namespace, and people who look or edit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor_operator.api.v1alpha1.meta import GROUP
from tests.support.builders import a_supervisor
from tests.support.install import operator_kubeconfig
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess
from tests.support.rendering import kustomize, moved
from tests.support.tokens import Agent

GATHER_SECONDS = 20
FLAGS = ("--resync-seconds=1", "--leader-elect=true")


@pytest.fixture
def namespaced(
    fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path
) -> Iterator[OperatorProcess]:
    """An operator with the rights of overlay `namespaced` and no other."""
    assert operator_access.exists(), "the policies are in force"
    for overlay in ("cluster-parts", "namespaced"):
        items = kustomize(overlay)
        wanted = {key: item for key, item in items.items() if key[0] != "Deployment"}
        text = moved(wanted, fake_kubectl.namespace)
        fake_kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)
    kubeconfig = operator_kubeconfig(fake_kubectl.cluster, tmp_path, fake_kubectl.namespace)
    place = fake_kubectl.namespace
    flags = (*FLAGS, f"--namespace={place}", f"--lease-namespace={place}")
    found = OperatorProcess(kubeconfig, tmp_path / "operator.log", *flags)
    yield found
    found.kill()


def test_an_operator_of_one_namespace_needs_no_more_than_its_roles(
    namespaced: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    namespaced.start().ready()
    fake_kubectl.create(a_supervisor(heartbeat={"intervalSeconds": 60}))
    fake_kubectl.wait("heartbeat/hello-r1", "create")
    with Agent.of(fake_kubectl, fake_kubectl.get("pod", "hello-r1")) as agent:
        assert agent.beat().status == 200
    fake_kubectl.wait_status("hello", phase="ACTIVE", health="HEALTHY")
    fake_kubectl.patch("hello", {"operatingMode": "Stopped"})
    fake_kubectl.wait_status("hello", phase="TERMINATED")
    assert namespaced.stop() == 0
    assert "orbidden" not in namespaced.log
    assert "may not" not in namespaced.log


def test_it_cannot_reach_beyond_its_namespace(
    namespaced: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    assert namespaced.log_file.parent.exists()
    account = f"system:serviceaccount:{fake_kubectl.namespace}:supervisor-operator"
    for verb, resource in (("create", "pods"), ("list", f"supervisors.{GROUP}")):
        asked = ("auth", "can-i", verb, resource, f"--as={account}")
        assert fake_kubectl.ask(*asked).out.strip() == "yes"
        assert fake_kubectl.ask(*asked, "--namespace=default").out.strip() == "no"
        assert fake_kubectl.ask(*asked, "--all-namespaces").out.strip() == "no"


SEES = {("get", f"supervisors.{GROUP}"), ("watch", f"heartbeats.{GROUP}")}
RUNS = {("create", f"supervisors.{GROUP}"), ("patch", f"supervisorteams.{GROUP}")}
NEVER = {
    ("update", f"supervisors.{GROUP}/status"),
    ("patch", f"heartbeats.{GROUP}/status"),
    ("create", f"heartbeats.{GROUP}"),
    ("beat-for-others", f"heartbeats.{GROUP}"),
}


@pytest.mark.parametrize(
    ("role", "may"), [("view", SEES), ("edit", SEES | RUNS), ("admin", SEES | RUNS)]
)
def test_who_may_look_at_a_namespace_sees_its_agents_and_who_may_edit_runs_them(
    kubectl: Kubectl, role: str, may: set[tuple[str, str]]
) -> None:
    names = ("supervision-viewer", "supervision-editor")
    roles = {key: item for key, item in kustomize("cluster").items() if key[2] in names}
    kubectl("apply", "--server-side", "-f", "-", stdin=moved(roles, kubectl.namespace))
    kubectl("create", "rolebinding", "jane", f"--clusterrole={role}", "--user=jane")
    deadline = time.monotonic() + GATHER_SECONDS
    while not all(allows(kubectl, *right) for right in may):
        assert time.monotonic() < deadline, f"our rules are not part of {role}"
    assert {right for right in SEES | RUNS | NEVER if allows(kubectl, *right)} == may


def allows(kubectl: Kubectl, verb: str, resource: str) -> bool:
    plain, _, subresource = resource.partition("/")
    words = [verb, plain, *([f"--subresource={subresource}"] if subresource else [])]
    return kubectl.ask("auth", "can-i", *words, "--as=jane").out.strip() == "yes"
