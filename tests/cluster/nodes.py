"""Real nodes beside a control plane: started together, and taken away without a trace."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.cluster import cgroups, network, node, packages
from tests.cluster.control import ControlPlane
from tests.cluster.errors import ClusterError, UsageError
from tests.cluster.network import MAX_NODES, Network
from tests.cluster.node import Node
from tests.cluster.probes import wait_until
from tests.cluster.processes import Book, Process, end


def check(count: int, folder: Path) -> None:
    """Refuse what cannot work before anything is made."""
    if not 1 <= count <= MAX_NODES:
        raise UsageError(f"{count} nodes cannot be had: choose 1 to {MAX_NODES}")
    node.check_folder(folder)
    packages.need_packages()


def start(plane: ControlPlane, wire: Network, count: int, images: list[Path]) -> None:
    """Start the control plane and, while it comes up, the runtimes: they unpack the images."""
    network.lay(wire, plane.ports["api"])
    members = [Node(number, plane.folder, wire) for number in range(count)]
    with ThreadPoolExecutor() as pool:
        runtimes = [pool.submit(_runtime, plane, one, count, images) for one in members]
        plane.start()
        plane.start_scheduler()
        holders = [runtime.result() for runtime in runtimes]
    kubelets = [
        node.start_kubelet(one, plane, holder) for one, holder in zip(members, holders, strict=True)
    ]
    for one, kubelet in zip(members, kubelets, strict=True):
        _wait_ready(plane, one, kubelet)


def kill(folder: Path) -> None:
    """End the nodes of a cluster with everything that runs in them."""
    for process in Book(folder).read():
        if process.name.startswith("node-"):
            end(process, patience=0)


def clear(folder: Path) -> None:
    """Remove what dead nodes leave on the host; the bridge, their lock, goes last."""
    for wire in network.owned(folder):
        cgroups.remove(f"{wire.bridge}-node-")
        network.release(wire)


def _runtime(plane: ControlPlane, one: Node, count: int, images: list[Path]) -> Process:
    holder = node.start_namespaces(one, plane)
    node.connect(one, plane, holder, count)
    node.start_runtime(one, plane, holder, images)
    return holder


def _wait_ready(plane: ControlPlane, one: Node, kubelet: Process) -> None:
    condition = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"

    def ready() -> bool:
        try:
            return plane.kubectl("get", "node", one.name, "-o", condition) == "True"
        except ClusterError:
            return False

    wait_until(ready, one.name, kubelet, plane.book)
