"""The life of a Supervisor on a real API server; the operator is a real process."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.support.builders import a_supervisor
from tests.support.kstatus import kstatus
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess

NONE = {"source": "None"}
QUICK = {"delaySeconds": 1, "maxDelaySeconds": 1}


def create(kubectl: Kubectl, name: str = "hello", **spec: Any) -> None:
    kubectl.create(a_supervisor(name, **({"heartbeat": NONE} | spec)))


def test_create_pause_resume_stop_start_restart_delete(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    kubectl = fake_kubectl
    create(kubectl, config={"symbol": "BTCUSDT"})
    kubectl.wait("sup/hello", "condition=Ready")
    found = kubectl.wait_status("hello", phase="ACTIVE", health="HEALTHY")
    assert kstatus(found) == "Current"
    pod = kubectl.get("pod", "hello-r1")
    assert json.loads(pod["metadata"]["annotations"]["supervision.dev/config"]) == {
        "symbol": "BTCUSDT"
    }
    assert found["status"]["podUID"] == pod["metadata"]["uid"]

    kubectl.patch("hello", {"operatingMode": "Paused"})
    kubectl.wait_status("hello", phase="PAUSED")
    kubectl.patch("hello", {"operatingMode": "Running"})
    kubectl.wait_status("hello", phase="ACTIVE")
    assert kubectl.get("pod", "hello-r1")["metadata"]["uid"] == pod["metadata"]["uid"]

    kubectl.patch("hello", {"operatingMode": "Stopped"})
    kubectl.wait_status("hello", phase="TERMINATED")
    assert kubectl.names("pods") == []
    kubectl.patch("hello", {"operatingMode": "Running"})
    kubectl.wait_status("hello", phase="ACTIVE", podName="hello-r2")

    kubectl.patch("hello", {"restartRequest": "please"})
    kubectl.wait_status("hello", podName="hello-r3", phase="ACTIVE")
    kubectl.patch("hello", {"agent": {"image": "localhost/agent:2"}})
    kubectl.wait_status("hello", podName="hello-r4", phase="ACTIVE")
    image = kubectl.get("pod", "hello-r4")["spec"]["containers"][0]["image"]
    assert image == "localhost/agent:2"
    assert kubectl.get("sup", "hello")["metadata"].get("finalizers") is None

    kubectl("delete", "sup", "hello", "--timeout=10s")
    kubectl("wait", "pod", "--all", "--for=delete", "--timeout=10s")
    story = ["Active", "Paused", "Resumed", "Stopped", "Started", "Active"]
    story += ["Restarted", "Active", "Restarted", "Active"]
    # A pod that is ready before its creation was told needs no Event of its own for that.
    assert kubectl.events("hello") in (story, ["Spawned", *story])
    assert "Traceback" not in operator.log
    assert "forbidden" not in operator.log.lower()


def test_crash_restart_exhaust_and_the_way_out(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    del operator
    kubectl = fake_kubectl
    labels = {"metadata": {"labels": {"fake.test/exit-code": "3"}}}
    template = labels | {"spec": {"containers": [{"name": "agent", "image": "localhost/a:1"}]}}
    create(kubectl, agent={"template": template}, restart={"maxRestarts": 2} | QUICK)
    found = kubectl.wait_status("hello", phase="FAILED")
    assert found["status"]["restartSummary"] == "2/2"
    assert found["status"]["podName"] == "hello-r3"
    assert found["status"]["lastTermination"]["exitCode"] == 3
    assert kstatus(found) == "Failed"
    row = kubectl("get", "sup", "hello", "--no-headers").out.split()
    assert row[:5] == ["hello", "FAILED", "UNKNOWN", "RestartBudgetExhausted", "2/2"]
    assert "hello-r3" in kubectl.names("pods"), "the last one is kept to be read"
    assert kubectl.events("hello")[-1] == "RestartBudgetExhausted"

    well = {"spec": template["spec"], "metadata": {"labels": {"fake.test/exit-code": None}}}
    kubectl.patch("hello", {"agent": {"template": well}})
    found = kubectl.wait_status("hello", phase="ACTIVE")
    assert found["status"]["restartSummary"] == "0/2"


def test_finish(operator: OperatorProcess, fake_kubectl: Kubectl) -> None:
    del operator
    create(fake_kubectl)
    fake_kubectl.wait_status("hello", phase="ACTIVE")
    fake_kubectl("label", "pod", "hello-r1", "fake.test/exit-code=0")
    found = fake_kubectl.wait_status("hello", phase="TERMINATED")
    assert found["status"]["outcome"]["type"] == "Finished"
    fake_kubectl.wait("sup/hello", "condition=Succeeded")


def test_pod_deleted_by_hand_is_replaced_uncounted(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    del operator
    create(fake_kubectl)
    fake_kubectl.wait_status("hello", phase="ACTIVE")
    fake_kubectl("delete", "pod", "hello-r1", "--wait=false")
    found = fake_kubectl.wait_status("hello", podName="hello-r2", phase="ACTIVE")
    assert found["status"]["restartSummary"] == "0/3"


def test_a_supervisor_without_an_agent(operator: OperatorProcess, fake_kubectl: Kubectl) -> None:
    del operator
    item = a_supervisor("desk")
    del item["spec"]["agent"]
    fake_kubectl.create(item)
    fake_kubectl.wait_status("desk", phase="ACTIVE")
    assert fake_kubectl.names("pods") == []


def test_100_supervisors_and_nothing_changing_costs_no_write(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    """Each is looked at once more; the resourceVersions of everything of ours stand still."""
    items = [a_supervisor(f"a{number}", heartbeat=NONE) for number in range(100)]
    fake_kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})
    fake_kubectl("wait", "sup", "--all", "--for=condition=Ready", "--timeout=60s")
    assert len(fake_kubectl.names("pods")) == 100

    def versions() -> list[str]:
        answer = fake_kubectl("get", "sup,pods,events", "-o", "json")
        return sorted(item["metadata"]["resourceVersion"] for item in answer.json["items"])

    def passes() -> int:
        lines = operator.get("/metrics").splitlines()
        start = 'supervisor_operator_reconcile_total{kind="Supervisor",result="ok"}'
        return int(float(next(line for line in lines if line.startswith(start)).split()[-1]))

    before, done = versions(), passes()
    operator.until(lambda: passes() >= done + len(items))
    assert versions() == before


def test_sigterm_ends_it_within_three_seconds(operator: OperatorProcess) -> None:
    started = time.monotonic()
    assert operator.stop() == 0
    assert time.monotonic() - started < 3


def test_delete_and_namespace_deletion_need_no_operator(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    create(fake_kubectl)
    create(fake_kubectl, "other")
    fake_kubectl("wait", "sup", "--all", "--for=condition=Ready", "--timeout=30s")
    operator.kill()
    fake_kubectl("delete", "sup", "hello", "--timeout=10s")
    fake_kubectl("wait", "pod/hello-r1", "--for=delete", "--timeout=10s")
    fake_kubectl("delete", "namespace", fake_kubectl.namespace, "--timeout=20s")
    fake_kubectl("create", "namespace", fake_kubectl.namespace)


def test_foreground_deletion_starts_nobody_again(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    create(fake_kubectl)
    fake_kubectl.wait_status("hello", phase="ACTIVE")
    fake_kubectl("delete", "sup", "hello", "--cascade=foreground", "--timeout=10s")
    assert fake_kubectl.names("pods") == []
    assert "hello-r2" not in operator.log
