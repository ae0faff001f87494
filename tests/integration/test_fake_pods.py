"""Tier fake does to pods what later tests rely on."""

from typing import Any

from tests.support.kubectl import Kubectl


def a_pod(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "agent", "image": "localhost/none"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"restartPolicy": "Never", "containers": containers} | spec,
    }


def end_of(pod: dict[str, Any]) -> tuple[str, int]:
    state = pod["status"]["containerStatuses"][0]["state"]
    return pod["status"]["phase"], state["terminated"]["exitCode"]


def test_a_pod_runs_with_its_sidecar_and_ends_with_the_code_asked_for(
    fake_kubectl: Kubectl,
) -> None:
    sidecar = {"name": "relay", "image": "localhost/none", "restartPolicy": "Always"}
    fake_kubectl.create(a_pod("worker", initContainers=[sidecar]))
    fake_kubectl.wait("pod/worker", "condition=Ready")
    running = fake_kubectl.get("pod", "worker")["status"]
    assert "running" in running["initContainerStatuses"][0]["state"]
    assert running["podIP"].startswith("127.")
    fake_kubectl("label", "pod", "worker", "fake.test/exit-code=3")
    fake_kubectl.wait("pod/worker", "jsonpath={.status.phase}=Failed")
    assert end_of(fake_kubectl.get("pod", "worker")) == ("Failed", 3)


def test_a_pod_that_finishes(fake_kubectl: Kubectl) -> None:
    fake_kubectl.create(a_pod("worker", {"fake.test/exit-code": "0"}))
    fake_kubectl.wait("pod/worker", "jsonpath={.status.phase}=Succeeded")
    assert end_of(fake_kubectl.get("pod", "worker")) == ("Succeeded", 0)


def test_a_deadline_of_one_second_ends_a_pod_but_not_a_stuck_one(fake_kubectl: Kubectl) -> None:
    patch = '{"spec": {"activeDeadlineSeconds": 1}}'
    for name, labels in (("stuck", {"fake.test/stuck": "true"}), ("worker", {})):
        fake_kubectl.create(a_pod(name, labels))
        fake_kubectl.wait(f"pod/{name}", "condition=Ready")
        fake_kubectl("patch", "pod", name, "--type=merge", "-p", patch)
    fake_kubectl.wait("pod/worker", "jsonpath={.status.reason}=DeadlineExceeded")
    assert end_of(fake_kubectl.get("pod", "worker")) == ("Failed", 137)
    assert fake_kubectl.get("pod", "stuck")["status"]["phase"] == "Running"
    fake_kubectl("delete", "pod", "stuck", "--force", "--grace-period=0")


def test_never_ready_stays_pending_while_others_run_and_go(fake_kubectl: Kubectl) -> None:
    fake_kubectl.create(a_pod("shy", {"fake.test/never-ready": "true"}))
    fake_kubectl.create(a_pod("worker"))
    fake_kubectl.wait("pod/worker", "condition=Ready")
    assert fake_kubectl.get("pod", "shy")["status"]["phase"] == "Pending"
    fake_kubectl("delete", "pod", "worker", "--timeout=10s")
