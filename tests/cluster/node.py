"""One node: a set of namespaces that holds a containerd and a kubelet.

Inside, all paths are the default ones; outside there is one process to kill, one cable to pull and
one folder. Pods reach the API server by its service address and nothing beyond the cluster.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster import cgroups, network, packages
from tests.cluster.certificates import Pair
from tests.cluster.control import ControlPlane
from tests.cluster.errors import ClusterError
from tests.cluster.network import Network
from tests.cluster.probes import wait_until
from tests.cluster.processes import Process

COVERED = tuple(Path(name) for name in ("/run", "/var/lib", "/var/log"))
"""What a node lays its own folders over; the cluster's folder must be visible inside."""
UNUSED_PLUGINS = (
    "io.containerd.internal.v1.opt",
    "io.containerd.internal.v1.tracing",
    "io.containerd.tracing.processor.v1.otlp",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.zfs",
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.devmapper",
)
PAUSE_IMAGE = "localhost/pause:dev"


@dataclass(frozen=True, slots=True)
class Node:
    number: int
    cluster: Path
    network: Network

    @property
    def name(self) -> str:
        return f"node-{self.number}"

    @property
    def folder(self) -> Path:
        return self.cluster / self.name

    @property
    def address(self) -> str:
        return self.network.node_address(self.number)

    @property
    def containerd(self) -> str:
        """The name of the runtime's process in the cluster's book."""
        return f"containerd-{self.number}"

    @property
    def kubelet(self) -> str:
        return f"kubelet-{self.number}"


def check_folder(cluster: Path) -> None:
    for covered in COVERED:
        if cluster.is_relative_to(covered):
            raise ClusterError(
                f"{cluster} lies in {covered}, which a node covers: set XDG_CACHE_HOME elsewhere"
            )


def start_namespaces(node: Node, plane: ControlPlane) -> Process:
    """Make the node's namespaces; their first process holds them, and takes all along."""
    unshare = ["unshare", "--pid", "--mount", "--net", "--fork", "--kill-child", "--mount-proc"]
    holder = plane.book.start_behind(node.name, [*unshare, str(plane.paths["pause"])])
    for name in ("lib", "log", "cni"):
        (node.folder / name).mkdir(parents=True)
    inside = enter(holder)
    _run([*inside, "mount", "-t", "tmpfs", "tmpfs", "/run"])
    _run([*inside, "mount", "--bind", str(node.folder / "lib"), "/var/lib"])
    _run([*inside, "mount", "--bind", str(node.folder / "log"), "/var/log"])
    return holder


def connect(node: Node, plane: ControlPlane, holder: Process, nodes: int) -> None:
    """Lay the node's cable, and what it needs to use it."""
    inside = enter(holder)
    network.connect(node.network, node.number, holder.pid)
    network.ip_batch(network.node_routes(node.network, node.number, nodes), inside)
    network.nft(network.node_rules(node.network, plane.ports["api"]), inside)
    _run([*inside, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"])


def start_runtime(node: Node, plane: ControlPlane, holder: Process, images: Iterable[Path]) -> None:
    """Start containerd and give it its images."""
    (node.folder / "cni" / "10-pods.conflist").write_text(json.dumps(cni_config(node)))
    config = node.folder / "containerd.toml"
    config.write_text(containerd_config(node))
    inside = enter(holder)
    command = [*inside, _program("containerd"), f"--config={config}"]
    runtime = plane.book.start_behind(node.containerd, command)
    ctr = [*inside, _program("ctr")]

    def answers() -> bool:
        return not subprocess.run([*ctr, "version"], capture_output=True, check=False).returncode

    wait_until(answers, node.containerd, runtime, plane.book)
    load_images(holder, images)


def load_images(holder: Process, images: Iterable[Path]) -> None:
    """Give the runtime of a node the images of these archives."""
    ctr = [*enter(holder), _program("ctr"), "--namespace=k8s.io"]
    for image in images:
        _run([*ctr, "images", "import", str(image)])


def start_kubelet(node: Node, plane: ControlPlane, holder: Process) -> Process:
    authority = plane.authority
    cgroups.create(node.network.cgroup(node.number))
    sans = (node.name, node.address)
    pair = authority.issue(node.name, f"system:node:{node.name}", "system:nodes", sans)
    config = node.folder / "kubelet.json"
    config.write_text(json.dumps(kubelet_config(node, authority.ca, pair), indent=1))
    server = f"https://{node.network.gateway}:{plane.ports['api']}"
    flags = [
        f"--config={config}",
        f"--kubeconfig={authority.kubeconfig(node.folder / 'kubeconfig', server, pair)}",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
    ]
    command = [*enter(holder), str(plane.paths["kubelet"]), *flags]
    return plane.book.start_behind(node.kubelet, command)


def enter(holder: Process) -> list[str]:
    """The beginning of a command that is to run inside a node."""
    return ["nsenter", f"--target={holder.pid}", "--pid", "--mount", "--net", "--"]


def containerd_config(node: Node) -> str:
    return f"""\
version = 2
disabled_plugins = {json.dumps(UNUSED_PLUGINS)}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{packages.CNI}"
    conf_dir = {json.dumps(str(node.folder / "cni"))}
"""


def cni_config(node: Node) -> dict[str, Any]:
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": node.network.pod_subnet(node.number)}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]}


def kubelet_config(node: Node, ca: Path, pair: Pair) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "address": node.address,
        "readOnlyPort": 0,
        "tlsCertFile": str(pair.certificate),
        "tlsPrivateKeyFile": str(pair.key),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(ca)},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.network.cgroup(node.number)}",
        "failCgroupV1": False,
        "enforceNodeAllocatable": ["pods"],
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        "evictionHard": {},
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": False,
        "resolvConf": "",
        # There is no DNS: a lookup is refused at once instead of hanging, and nobody is warned.
        "clusterDNS": ["127.0.0.1"],
        "clusterDomain": "cluster.local",
        "nodeLeaseDurationSeconds": 8,
        "syncFrequency": "10s",
        "nodeStatusUpdateFrequency": "5s",
        "maxPods": 200,
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
    }


def _program(name: str) -> str:
    return packages.find(name) or name


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"{' '.join(command)}: {done.stderr.strip()}")
