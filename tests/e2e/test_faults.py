"""What can be done to a node from outside, and that pods live through it."""

from tests.cluster import faults
from tests.cluster.local import Cluster
from tests.e2e.pods import a_pod
from tests.support.kubectl import Kubectl


def a_worker(kubectl: Kubectl) -> dict[str, object]:
    kubectl.create(a_pod("worker", nodeName="node-0"))
    kubectl.wait("pod/worker", "condition=Ready")
    return kubectl.get("pod", "worker")


def test_a_cable_is_pulled_and_plugged(node: Cluster, node_kubectl: Kubectl) -> None:
    worker = a_worker(node_kubectl)
    before = faults.pids(node, worker)
    faults.pull_cable(node)
    try:
        node_kubectl.wait("node/node-0", "condition=Ready=Unknown")
        assert faults.pids(node, worker) == before, "a cable more or less kills nobody"
    finally:
        faults.plug_cable(node)
    node_kubectl.wait("node/node-0", "condition=Ready")
    node_kubectl.wait("pod/worker", "condition=Ready")


def test_a_kubelet_comes_back_to_the_same_containers(node: Cluster, node_kubectl: Kubectl) -> None:
    worker = a_worker(node_kubectl)
    before = faults.pids(node, worker)
    faults.stop_kubelet(node)
    assert node_kubectl.ask("exec", "worker", "--", "true").code != 0
    assert faults.pids(node, worker) == before
    assert faults.start_kubelet(node).alive
    node_kubectl.create(a_pod("newcomer", nodeName="node-0"))
    node_kubectl.wait("pod/newcomer", "condition=Ready")
    assert faults.pids(node, node_kubectl.get("pod", "worker")) == before


def test_the_api_server_goes_and_comes_back_with_what_it_knew(
    node: Cluster, node_kubectl: Kubectl
) -> None:
    before = faults.pids(node, a_worker(node_kubectl))
    with faults.api_server_away(node):
        assert "refused" in node_kubectl.ask("get", "pods").err
    worker = node_kubectl.get("pod", "worker")
    assert worker["status"]["containerStatuses"][0]["restartCount"] == 0
    assert faults.pids(node, worker) == before
