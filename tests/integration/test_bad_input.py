"""Bad input of every kind: the truth in conditions, no retry storm, nobody else affected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.places import CRDS
from tests.support.api_call import Call
from tests.support.behind_proxy import Troubled, behind_proxy
from tests.support.builders import AGENT, a_supervisor, an_object
from tests.support.fleet import Fleet
from tests.support.install import MANIFESTS
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess
from tests.support.tokens import Agent

NONE = {"source": "None"}
QUICK = {"delaySeconds": 1, "maxDelaySeconds": 1}
NO_IMAGE = {"spec": {"containers": [{"name": "agent"}]}}
YEAR_MILLIS = 365 * 86400 * 1000


@pytest.fixture
def troubled(fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path) -> Iterator[Troubled]:
    with behind_proxy(fake_kubectl, operator_access, tmp_path, "--resync-seconds=0.5") as found:
        yield found


def create(kubectl: Kubectl, name: str = "hello", **spec: Any) -> None:
    kubectl.create(a_supervisor(name, **({"heartbeat": NONE} | spec)))


def a_template(**pod_spec: Any) -> dict[str, Any]:
    containers = [{"name": "agent"} | AGENT]
    return {"template": {"spec": {"containers": containers} | pod_spec}}


def wait_stalled(kubectl: Kubectl, reason: str, name: str = "hello") -> str:
    """Returns what the condition says."""
    path = '{.status.conditions[?(@.type=="Stalled")].reason}'
    kubectl.wait(f"sup/{name}", f"jsonpath={path}={reason}")
    conditions = kubectl.get("sup", name)["status"]["conditions"]
    return next(str(one["message"]) for one in conditions if one["type"] == "Stalled")


def uid(kubectl: Kubectl, kind: str, name: str) -> str:
    return str(kubectl.get(kind, name)["metadata"]["uid"])


def test_a_refused_template_fails_is_not_tried_again_and_heals_on_edit(
    troubled: Troubled, fake_kubectl: Kubectl
) -> None:
    create(fake_kubectl, agent={"template": NO_IMAGE})
    fake_kubectl.wait_status("hello", phase="FAILED")
    said = wait_stalled(fake_kubectl, "InvalidTemplate")
    assert "spec.containers[0].image: Required value" in said, "the server's own words"
    tried = troubled.proxy.calls("create", "pods")
    troubled.operator.let_pass()
    assert (tried, troubled.proxy.calls("create", "pods")) == (1, 1)
    assert fake_kubectl.events("hello") == ["TemplateRefused"]
    fake_kubectl.patch("hello", {"agent": {"template": a_template()["template"]}})
    fake_kubectl.wait_status("hello", phase="ACTIVE", podName="hello-r1")


def test_a_refused_new_template_leaves_the_old_pod_running(
    troubled: Troubled, fake_kubectl: Kubectl
) -> None:
    create(fake_kubectl)
    fake_kubectl.wait_status("hello", phase="ACTIVE")
    before = uid(fake_kubectl, "pod", "hello-r1")
    fake_kubectl.patch("hello", {"agent": {"image": None, "template": NO_IMAGE}})
    said = wait_stalled(fake_kubectl, "InvalidTemplate")
    assert "the old pod keeps running" in said
    troubled.operator.let_pass()
    assert troubled.proxy.calls("create", "pods") == 2, "one create, one dry run"
    assert fake_kubectl.get("sup", "hello")["status"]["phase"] == "ACTIVE"
    assert uid(fake_kubectl, "pod", "hello-r1") == before
    fake_kubectl.patch("hello", {"agent": AGENT | {"template": None}})
    fake_kubectl.wait("sup/hello", "condition=Ready")
    assert uid(fake_kubectl, "pod", "hello-r1") == before, "what it runs is wanted again"


def test_a_foreign_pod_under_our_name_is_never_touched(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    spec = {"containers": [{"name": "agent"} | AGENT]}
    foreign = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hello-r1"}, "spec": spec}
    before = fake_kubectl.create(foreign)["metadata"]["uid"]
    create(fake_kubectl)
    create(fake_kubectl, "other")
    said = wait_stalled(fake_kubectl, "NameConflict")
    assert "A pod hello-r1 that is not ours exists already" in said
    fake_kubectl.wait_status("other", phase="ACTIVE")
    assert uid(fake_kubectl, "pod", "hello-r1") == before
    fake_kubectl("delete", "pod", "hello-r1")
    fake_kubectl.wait_status("hello", phase="ACTIVE", podName="hello-r1")
    assert "Traceback" not in operator.log


def test_a_quota_is_waited_for(troubled: Troubled, fake_kubectl: Kubectl) -> None:
    fake_kubectl("create", "quota", "tight", "--hard=pods=0")
    fake_kubectl.wait("quota/tight", "jsonpath={.status.hard.pods}=0")
    create(fake_kubectl)
    said = wait_stalled(fake_kubectl, "CreateRefused")
    assert "exceeded quota: tight" in said
    assert fake_kubectl.get("sup", "hello")["status"]["phase"] == "SPAWNING"
    troubled.operator.until(lambda: troubled.proxy.calls("create", "pods") >= 4)
    fake_kubectl("delete", "quota", "tight")
    found = fake_kubectl.wait_status("hello", phase="ACTIVE")
    assert found["metadata"]["generation"] == 1, "healed without an edit"
    assert troubled.proxy.calls("create", "pods") <= 8, "though a resync passed each half second"


def test_missing_rights_are_waited_for(troubled: Troubled, fake_kubectl: Kubectl) -> None:
    def creates_a_pod(call: Call) -> bool:
        return call.verb == "create" and call.plural == "pods"

    words = "pods is forbidden: User cannot create resource pods"
    refusal = troubled.proxy.refuse(creates_a_pod, 403, words, times=None)
    create(fake_kubectl)
    assert words in wait_stalled(fake_kubectl, "CreateRefused")
    refusal.times = 0
    fake_kubectl.wait_status("hello", phase="ACTIVE")


def test_a_missing_service_account_is_waited_for(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    del operator
    create(fake_kubectl, agent=a_template(serviceAccountName="robot"))
    said = wait_stalled(fake_kubectl, "CreateRefused")
    assert 'serviceaccount "robot" not found' in said
    fake_kubectl("create", "serviceaccount", "robot")
    fake_kubectl.wait_status("hello", phase="ACTIVE")


def test_a_terminating_namespace_is_left_in_peace(
    troubled: Troubled, fake_kubectl: Kubectl
) -> None:
    create(fake_kubectl)
    create(fake_kubectl, "beats", heartbeat={})
    fake_kubectl("wait", "sup", "--all", "--for=jsonpath={.status.podUID}", "--timeout=30s")
    fake_kubectl("delete", "namespace", fake_kubectl.namespace, "--timeout=30s")
    fake_kubectl("create", "namespace", fake_kubectl.namespace)
    assert "Traceback" not in troubled.operator.log
    assert troubled.creates("pods") == 2
    assert troubled.proxy.calls("create", "pods") <= 16, "refused ones wait longer each time"


def test_an_object_that_the_models_refuse_harms_nobody_else(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    create(fake_kubectl, "well")
    create(fake_kubectl, "turned")
    fake_kubectl.wait_status("turned", phase="ACTIVE")
    before = uid(fake_kubectl, "pod", "turned-r1")
    with loose_crd(fake_kubectl):
        create(fake_kubectl, "new", heartbeat={"intervalSeconds": "often"})
        fake_kubectl.patch("turned", {"restart": {"maxRestarts": "many"}})
        assert "spec.heartbeat.intervalSeconds" in wait_stalled(fake_kubectl, "InvalidSpec", "new")
        assert "spec.restart.maxRestarts" in wait_stalled(fake_kubectl, "InvalidSpec", "turned")
        fake_kubectl.patch("well", {"agent": {"image": "localhost/agent:2"}})
        fake_kubectl.wait_status("well", podName="well-r2", phase="ACTIVE")
        assert uid(fake_kubectl, "pod", "turned-r1") == before
        fake_kubectl.patch("turned", {"restart": {"maxRestarts": 5}})
        fake_kubectl.wait("sup/turned", "condition=Ready")
        fake_kubectl("delete", "sup", "new")
    assert fake_kubectl.names("pods") == ["turned-r1", "well-r2"]
    assert "Traceback" not in operator.log


@contextmanager
def loose_crd(kubectl: Kubectl) -> Iterator[None]:
    """For a while the API server takes any spec."""
    parent = {"type": "object", "properties": {"name": {"type": "string"}}}  # a selectable field
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True} | {
        "properties": {"parentRef": parent}
    }
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec"
    change = json.dumps([{"op": "replace", "path": path, "value": anything}])
    name = "supervisors.supervision.dev"
    kubectl("patch", "crd", name, "--type=json", "-p", change)
    try:
        yield
    finally:
        kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRDS))


def test_the_agent_is_the_container_named_agent_and_its_exit_ends_the_rest(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    del operator
    kubectl = fake_kubectl
    containers = [{"name": "helper", "image": "localhost/h:1"}, {"name": "agent"} | AGENT]
    create(kubectl, agent=a_template(containers=containers), restart=QUICK)
    kubectl.wait_status("hello", phase="ACTIVE")
    kubectl("label", "pod", "hello-r1", "fake.test/stuck=true")
    half = [container("helper", {"running": {}}), ended("agent", 3)]
    set_status(kubectl, "hello-r1", {"containerStatuses": half})
    ended_by = r"{.metadata.annotations.supervision\.dev/ended-by}"
    kubectl.wait("pod/hello-r1", f"jsonpath={ended_by}=AgentExited")
    assert kubectl.get("pod", "hello-r1")["spec"]["activeDeadlineSeconds"] == 1
    both = [ended("agent", 3), ended("helper", 137)]
    over = {"phase": "Failed", "reason": "DeadlineExceeded", "containerStatuses": both}
    set_status(kubectl, "hello-r1", over)
    found = kubectl.wait_status("hello", podName="hello-r2", phase="ACTIVE")["status"]
    assert found["lastTermination"]["exitCode"] == 3
    assert found["lastTermination"]["reason"] == "Error"
    assert found["restartSummary"] == "1/3"


def ended(name: str, code: int) -> dict[str, Any]:
    return container(name, {"terminated": {"exitCode": code, "reason": "Error"}})


def container(name: str, state: dict[str, Any]) -> dict[str, Any]:
    found = {"name": name, "ready": False, "restartCount": 0, "state": state}
    return found | {"image": "x", "imageID": ""}


def set_status(kubectl: Kubectl, pod: str, status: dict[str, Any]) -> None:
    patch = json.dumps({"status": status})
    kubectl("patch", "pod", pod, "--subresource=status", "--type=strategic", "-p", patch)


def test_node_name_by_hand(operator: OperatorProcess, fake_kubectl: Kubectl) -> None:
    """A node that exists is used; one that does not is the truth in conditions."""
    del operator
    create(fake_kubectl, "here", agent=a_template(nodeName="fake-1"))
    create(fake_kubectl, agent=a_template(nodeName="nowhere"), progressDeadlineSeconds=2)
    assert fake_kubectl.wait_status("here", phase="ACTIVE")["status"]["nodeName"] == "fake-1"
    said = wait_stalled(fake_kubectl, "ProgressDeadlineExceeded")
    assert "pending for more than 2 s, and left alone" in said
    assert fake_kubectl.get("sup", "hello")["status"]["run"] == 1


def test_a_foreign_heartbeat_is_left_alone(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    del operator
    spec = {"podUID": "somebody", "supervisor": "else", "intervalSeconds": 1}
    before = fake_kubectl.create(an_object("Heartbeat", "hello-r1", spec))["metadata"]["uid"]
    create(fake_kubectl, heartbeat={"intervalSeconds": 1})
    said = wait_stalled(fake_kubectl, "NameConflict")
    assert "A Heartbeat hello-r1 that is not of pod hello-r1 exists already" in said
    assert uid(fake_kubectl, "hb", "hello-r1") == before
    fake_kubectl("delete", "hb", "hello-r1")
    fake_kubectl.wait("hb/hello-r1", "create")
    ours = fake_kubectl.get("hb", "hello-r1")["spec"]["podUID"]
    assert ours == uid(fake_kubectl, "pod", "hello-r1")
    with Fleet(fake_kubectl, 0.5) as fleet:
        fleet.join("hello-r1")
        fake_kubectl.wait_status("hello", phase="ACTIVE", health="HEALTHY")


def test_a_foreign_role_of_our_name_grants_nothing(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    del operator
    fake_kubectl("create", "role", "supervision-beats", "--verb=get", "--resource=pods")
    create(fake_kubectl, heartbeat={})
    create(fake_kubectl, "quiet")
    said = wait_stalled(fake_kubectl, "NameConflict")
    assert "A Role supervision-beats with other content exists already" in said
    fake_kubectl.wait_status("quiet", phase="ACTIVE")
    assert fake_kubectl.names("pods") == ["quiet-r1"]
    fake_kubectl("delete", "role", "supervision-beats")
    fake_kubectl.wait_status("hello", podName="hello-r1")


def test_without_the_policy_no_agent_that_beats_is_started(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    create(fake_kubectl, "old", heartbeat={})
    fake_kubectl.wait_status("old", podName="old-r1")
    with no_policy(fake_kubectl):
        operator.kill()
        operator.start().ready()
        create(fake_kubectl, heartbeat={})
        said = wait_stalled(fake_kubectl, "PolicyMissing")
        assert "apply manifests/policies" in said
        create(fake_kubectl, "quiet")
        fake_kubectl.wait_status("quiet", phase="ACTIVE")
        assert "hello-r1" not in fake_kubectl.names("pods")
        assert fake_kubectl.get("sup", "old")["status"]["podName"] == "old-r1"
    fake_kubectl.wait_status("hello", podName="hello-r1")


@contextmanager
def no_policy(kubectl: Kubectl) -> Iterator[None]:
    """For a while nothing binds a Heartbeat to its pod."""
    kind = "validatingadmissionpolicybinding"
    kubectl("delete", kind, "supervision-heartbeats")
    try:
        yield
    finally:
        policies = str(MANIFESTS / "policies")
        kubectl("apply", "--server-side", "--force-conflicts", "-k", policies)


def test_a_deadline_of_the_users_own_is_a_failure_like_any_other(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    del operator
    limits = QUICK | {"maxRestarts": 1}
    create(fake_kubectl, agent=a_template(activeDeadlineSeconds=1), restart=limits)
    found = fake_kubectl.wait_status("hello", phase="FAILED")["status"]
    assert found["lastTermination"]["reason"] == "DeadlineExceeded"
    assert (found["restartSummary"], found["podName"]) == ("1/1", "hello-r2")
    assert found["outcome"]["reason"] == "RestartBudgetExhausted"


def test_beats_that_lie(troubled: Troubled, fake_kubectl: Kubectl) -> None:
    """A year old, backwards, negative, of a pod that is finished."""
    kubectl = fake_kubectl
    beat = {"intervalSeconds": 2}
    create(kubectl, heartbeat=beat, restart={"onUnresponsive": "MarkOnly"})
    create(kubectl, "other", heartbeat=beat)
    kubectl("wait", "sup", "--all", "--for=jsonpath={.status.podUID}", "--timeout=30s")
    with (
        Agent.of(kubectl, kubectl.get("pod", "other-r1")) as other,
        Agent.of(kubectl, kubectl.get("pod", "hello-r1")) as agent,
    ):
        other.beat()
        agent.beat(sequence=5)
        kubectl.wait_status("hello", health="HEALTHY")
        assert agent.beat(sequence=6, age_millis=-1).status == 422
        agent.beat(sequence=6, age_millis=YEAR_MILLIS)
        kubectl.wait_status("hello", health="UNRESPONSIVE")
        other.beat(sequence=2)
        agent.beat(sequence=1)
        kubectl.wait_status("hello", health="HEALTHY")
        kubectl.wait_status("other", health="HEALTHY")

        def deletes_a_heartbeat(call: Call) -> bool:
            return call.verb == "delete" and call.plural == "heartbeats"

        refusal = troubled.proxy.refuse(deletes_a_heartbeat, 503, "not now", times=None)
        kubectl("label", "pod", "hello-r1", "fake.test/exit-code=0")
        kubectl.wait_status("hello", phase="TERMINATED")
        assert agent.beat(sequence=9).status == 200
        troubled.operator.let_pass()
        refusal.times = 0
    kubectl("wait", "hb/hello-r1", "--for=delete", "--timeout=30s")
    found = kubectl.get("sup", "hello")["status"]
    assert (found["phase"], found["run"]) == ("TERMINATED", 1)
    assert found["outcome"]["type"] == "Finished"
