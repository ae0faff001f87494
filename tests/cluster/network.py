"""The wire of tier node: what a cluster's index decides, and how the host's side is laid.

Every name and range follows from the index K. The bridge kbK is the lock: who creates it has K.
Its hardware address is made from the cluster's folder, so that the owner is known even when every
file was lost.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.errors import ClusterError
from tests.cluster.packages import find

INDEXES = range(64)
MAX_NODES = 4
LINKS = Path("/sys/class/net")
FIRST_NODE = 10


@dataclass(frozen=True, slots=True)
class Network:
    index: int

    @property
    def bridge(self) -> str:
        """Also the name of the nft table, and the first part of cables and cgroups."""
        return f"kb{self.index}"

    @property
    def gateway(self) -> str:
        """The host on the bridge; here nodes and pods reach the API server."""
        return f"10.231.{self.index}.1"

    @property
    def service_range(self) -> str:
        return f"10.233.{self.index}.0/24"

    @property
    def api_service(self) -> str:
        return f"10.233.{self.index}.1"

    @property
    def pod_range(self) -> str:
        return f"10.232.{MAX_NODES * self.index}.0/22"

    def pod_subnet(self, node: int) -> str:
        return f"10.232.{MAX_NODES * self.index + node}.0/24"

    def node_address(self, node: int) -> str:
        return f"10.231.{self.index}.{FIRST_NODE + node}"

    def cable(self, node: int) -> str:
        """The host's end of a node's cable."""
        return f"{self.bridge}n{node}"

    def cgroup(self, node: int) -> str:
        return f"{self.bridge}-node-{node}"


def mark(folder: Path) -> str:
    """The hardware address of the bridge of a cluster folder; 02 says that it was made locally."""
    digest = hashlib.sha256(str(folder).encode()).digest()[:5]
    return ":".join(f"{byte:02x}" for byte in b"\x02" + digest)


def claim(folder: Path) -> Network:
    """Take the first index nobody on this machine has."""
    for index in INDEXES:
        network = Network(index)
        if (LINKS / network.bridge).exists():
            continue
        words = ["link", "add", network.bridge, "address", mark(folder), "type", "bridge"]
        done = _run("ip", words)
        if done.returncode == 0:
            return network
        if "File exists" not in done.stderr:
            raise ClusterError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    raise ClusterError(
        f"all {len(INDEXES)} bridges kb0 to kb{INDEXES[-1]} exist: run `make cluster-clean`, "
        "then delete with `ip link del` those that no cluster has"
    )


def owned(folder: Path) -> list[Network]:
    """What a cluster folder has claimed and not given back."""
    return [
        network
        for network in map(Network, INDEXES)
        if _address_of(LINKS / network.bridge) == mark(folder)
    ]


def lay(network: Network, api_port: int) -> None:
    """Join the bridge to the API server on loopback, and to nothing else."""
    release(network, keep_bridge=True)
    ip_batch(
        [
            f"addr add {network.gateway}/24 dev {network.bridge}",
            f"link set {network.bridge} up",
            f"route replace unreachable {network.service_range}",
            f"route replace unreachable {network.pod_range}",
        ]
    )
    Path(f"/proc/sys/net/ipv4/conf/{network.bridge}/route_localnet").write_text("1")
    nft(host_rules(network, api_port))


def host_rules(network: Network, api_port: int) -> str:
    bridge = f'iifname "{network.bridge}"'
    return f"""
table ip {network.bridge} {{
  chain api {{
    type nat hook prerouting priority -100
    {bridge} ip daddr {network.gateway} tcp dport {api_port} dnat to 127.0.0.1:{api_port}
  }}
  chain guard {{
    type filter hook input priority 0
    {bridge} ct state established,related accept
    {bridge} ct status dnat accept
    {bridge} drop
  }}
}}
"""


def release(network: Network, *, keep_bridge: bool = False) -> None:
    """Remove what `lay` made, or what there is of it; the bridge goes last, for it is the lock."""
    _run("nft", ["delete", "table", "ip", network.bridge])
    for target in (network.service_range, network.pod_range):
        _run("ip", ["route", "del", "unreachable", target])
    for cable in LINKS.glob(f"{network.bridge}n*"):
        _run("ip", ["link", "del", cable.name])
    if not keep_bridge:
        _run("ip", ["link", "del", network.bridge])
        if (LINKS / network.bridge).exists():
            raise ClusterError(f"bridge {network.bridge} does not go: try `ip link del` by hand")


def connect(network: Network, node: int, pid: int) -> None:
    """Lay the cable from the bridge to eth0 in the namespace of a process."""
    cable = network.cable(node)
    ip_batch(
        [
            f"link add {cable} type veth peer name eth0 netns {pid}",
            f"link set {cable} master {network.bridge} up",
        ]
    )


def node_routes(network: Network, node: int, nodes: int) -> list[str]:
    """What `ip` is told inside a node: itself, its neighbours, the API; no default route."""
    others = [number for number in range(nodes) if number != node]
    return [
        "link set lo up",
        f"addr add {network.node_address(node)}/24 dev eth0",
        "link set eth0 up",
        f"route add {network.api_service} via {network.gateway}",
        f"route add unreachable {network.service_range}",
        *(
            f"route add {network.pod_subnet(other)} via {network.node_address(other)}"
            for other in others
        ),
    ]


def node_rules(network: Network, api_port: int) -> str:
    to_api = f"ip daddr {network.api_service} tcp dport 443 dnat to {network.gateway}:{api_port}"
    return f"""
table ip node {{
  chain from_pods {{
    type nat hook prerouting priority -100
    {to_api}
  }}
  chain from_node {{
    type nat hook output priority -100
    {to_api}
  }}
  chain leaving {{
    type nat hook postrouting priority 100
    oifname "eth0" ip saddr {network.pod_range} ip daddr != {network.pod_range} masquerade
  }}
}}
"""


def ip_batch(lines: Iterable[str], inside: Iterable[str] = ()) -> None:
    _need(_run("ip", ["-batch", "-"], "\n".join(lines), inside))


def nft(rules: str, inside: Iterable[str] = ()) -> None:
    _need(_run("nft", ["-f", "-"], rules, inside))


def _run(
    program: str, words: list[str], stdin: str | None = None, inside: Iterable[str] = ()
) -> subprocess.CompletedProcess[str]:
    command = [*inside, find(program) or program, *words]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)


def _need(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise ClusterError(f"{' '.join(done.args)}: {done.stderr.strip() or done.stdout.strip()}")


def _address_of(link: Path) -> str | None:
    try:
        return (link / "address").read_text().strip()
    except OSError:
        return None
