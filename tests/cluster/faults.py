"""What tests do to a cluster of tier node, from outside: cables, kubelets, API server, processes.

Every fault has its remedy beside it; nothing here waits for Kubernetes to notice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster import cgroups, network
from tests.cluster.errors import ClusterError
from tests.cluster.local import Cluster
from tests.cluster.network import Network
from tests.cluster.processes import STOP_SECONDS, Book, Process, end, state

API_SERVER = "kube-apiserver"
READY_SECONDS = 30.0
POLL = 0.05


def pull_cable(cluster: Cluster, node: int = 0) -> None:
    """Cut a node off; its pods run on. The API shows NotReady some ten seconds later."""
    network.ip_batch([f"link set {_wire(cluster).cable(node)} down"])


def plug_cable(cluster: Cluster, node: int = 0) -> None:
    network.ip_batch([f"link set {_wire(cluster).cable(node)} up"])


def stop_kubelet(cluster: Cluster, node: int = 0) -> None:
    """Kill a kubelet at once; its pods run on."""
    end(_book(cluster).find(f"kubelet-{node}"), patience=0)


def start_kubelet(cluster: Cluster, node: int = 0) -> Process:
    """Start a stopped kubelet with the same flags."""
    book = _book(cluster)
    stopped = book.find(f"kubelet-{node}")
    return stopped if stopped.alive else book.start_behind(stopped.name, stopped.command)


def stop_api_server(cluster: Cluster) -> None:
    """Kill the API server at once, as a crash would; etcd keeps its data."""
    end(_book(cluster).find(API_SERVER), patience=0)


def start_api_server(cluster: Cluster) -> None:
    """Start a stopped API server with the same flags, and wait until it is ready."""
    book = _book(cluster)
    stopped = book.find(API_SERVER)
    process = stopped if stopped.alive else book.start(stopped.name, stopped.command)
    ask = [cluster.kubectl, f"--kubeconfig={cluster.kubeconfig}", "get", "--raw=/readyz"]
    deadline = time.monotonic() + READY_SECONDS
    while subprocess.run(ask, capture_output=True, check=False).returncode:
        if not process.alive:
            raise book.died(process)
        if time.monotonic() > deadline:
            raise ClusterError(f"{API_SERVER} is not ready again: see {book.logs}")
        time.sleep(POLL)


@contextmanager
def api_server_away(cluster: Cluster) -> Iterator[None]:
    """No API server inside this block; at its end it is back and ready."""
    stop_api_server(cluster)
    try:
        yield
    finally:
        start_api_server(cluster)


def freeze(cluster: Cluster, pod: dict[str, Any], container: str = "agent") -> list[int]:
    """SIGSTOP every process of a container, from the host; returns their pids, all stopped."""
    found = _signal(cluster, pod, container, signal.SIGSTOP)
    deadline = time.monotonic() + STOP_SECONDS
    while any(state(pid) != "T" for pid in found):
        if time.monotonic() > deadline:
            raise ClusterError(f"processes {found} do not stop: look at them by hand")
        time.sleep(POLL)
    return found


def thaw(cluster: Cluster, pod: dict[str, Any], container: str = "agent") -> list[int]:
    return _signal(cluster, pod, container, signal.SIGCONT)


def kill(cluster: Cluster, pod: dict[str, Any], container: str = "agent") -> list[int]:
    return _signal(cluster, pod, container, signal.SIGKILL)


def pids(cluster: Cluster, pod: dict[str, Any], container: str = "agent") -> list[int]:
    """The processes of a running container as the host numbers them.

    The pod is its API object, as just read: of a container started again only the new id is known.
    """
    node = int(pod["spec"]["nodeName"].rpartition("-")[2])
    found = cgroups.pids_of(_wire(cluster).cgroup(node), _container_id(pod, container))
    if not found:
        name = pod["metadata"]["name"]
        raise ClusterError(f"container {container} of pod {name} has no process: is it running?")
    return found


def _signal(
    cluster: Cluster, pod: dict[str, Any], container: str, number: signal.Signals
) -> list[int]:
    found = pids(cluster, pod, container)
    for pid in found:
        os.kill(pid, number)
    return found


def _container_id(pod: dict[str, Any], container: str) -> str:
    lists = ("containerStatuses", "initContainerStatuses")
    statuses = [status for name in lists for status in pod["status"].get(name, [])]
    for status in statuses:
        if status["name"] == container and status.get("containerID"):
            return str(status["containerID"]).rpartition("/")[2]
    raise ClusterError(f"pod {pod['metadata']['name']} has started no container {container}")


def _wire(cluster: Cluster) -> Network:
    if cluster.network is None:
        raise ClusterError(f"a cluster of tier {cluster.tier} ({cluster.way}) has no nodes of ours")
    return Network(cluster.network)


def _book(cluster: Cluster) -> Book:
    if cluster.folder is None or cluster.way != "local":
        raise ClusterError(f"this cluster ({cluster.way}) was not started here: its processes too")
    return Book(Path(cluster.folder))
