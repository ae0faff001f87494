"""The control plane of one cluster, on loopback: etcd, API server, CRDs, controllers."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.cluster import places
from tests.cluster.certificates import Authority, Pair
from tests.cluster.errors import ClusterError
from tests.cluster.network import Network
from tests.cluster.probes import Probe, wait_until
from tests.cluster.processes import Book

PORTS = ("etcd", "peer", "api", "controller", "scheduler", "kwok")
SERVER_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
)
AUDIT_POLICY = Path(__file__).parent / "audit-policy.yaml"


class ControlPlane:
    """One start, in the order etcd, API server, CRDs, controllers.

    With a network there are real nodes: the API server is known on their bridge too, and the loss
    of a node is noticed in ten seconds instead of almost a minute.
    """

    def __init__(
        self,
        folder: Path,
        paths: dict[str, Path],
        network: Network | None,
        *,
        audit: bool,
        manager_flags: Mapping[str, object],
    ) -> None:
        self.folder = folder
        self.paths = paths
        self.book = Book(folder)
        self.ports = _free_ports()
        self.authority = Authority(folder / "pki")
        self.audit_log = folder / "audit.log" if audit else None
        self._network = network
        self._manager_flags = manager_flags
        self._keys = self.authority.service_account_keys()
        self._server = self.authority.issue(
            "server", "kube-apiserver", sans=[*SERVER_NAMES, *self._addresses()]
        )
        self.admin = self.client("admin", "system:masters")

    def start(self) -> None:
        self._etcd()
        self._api_server()
        self.kubectl("apply", "--server-side", "-f", str(places.CRDS))
        self._controller_manager()

    def start_scheduler(self) -> None:
        flags = self._controller("kube-scheduler", "scheduler")
        self.launch("kube-scheduler", flags, f"{self._url('scheduler')}/healthz")

    def client(self, name: str, group: str | None = None) -> Path:
        """The kubeconfig of a new user."""
        pair = self.authority.issue(name.replace(":", "-"), name, group)
        path = self.folder / f"{name.rpartition(':')[2]}.kubeconfig"
        return self.authority.kubeconfig(path, self._url("api"), pair)

    def launch(self, name: str, flags: dict[str, object], ready: str, *, tls: bool = True) -> None:
        """Start a program and wait until it says that it is ready."""
        words = [
            f"--{key}" if value is True else f"--{key}={value}" for key, value in flags.items()
        ]
        process = self.book.start(name, [str(self.paths[name]), *words])
        wait_until(self._probe(ready, tls=tls), f"{name} at {ready}", process, self.book)

    def kubectl(self, *arguments: str) -> str:
        command = [str(self.paths["kubectl"]), f"--kubeconfig={self.admin}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ClusterError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def _addresses(self) -> list[str]:
        if self._network is None:
            return ["10.233.0.1"]
        return [self._network.gateway, self._network.api_service]

    def _url(self, port: str) -> str:
        return f"https://127.0.0.1:{self.ports[port]}"

    def _probe(self, url: str, *, tls: bool = True) -> Probe:
        admin = Pair(self.folder / "pki/admin.crt", self.folder / "pki/admin.key")
        return Probe(url, self.authority.ca if tls else None, admin)

    def _etcd(self) -> None:
        client = f"http://127.0.0.1:{self.ports['etcd']}"
        peer = f"http://127.0.0.1:{self.ports['peer']}"
        flags: dict[str, object] = {
            "data-dir": self.folder / "etcd",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            "unsafe-no-fsync": True,
            "log-level": "warn",
            "heartbeat-interval": 10,
            "election-timeout": 100,
        }
        self.launch("etcd", flags, f"{client}/health", tls=False)

    def _api_server(self) -> None:
        network = self._network
        flags: dict[str, object] = {
            "etcd-servers": f"http://127.0.0.1:{self.ports['etcd']}",
            "bind-address": "127.0.0.1",
            "secure-port": self.ports["api"],
            "advertise-address": network.gateway if network else "127.0.0.1",
            "endpoint-reconciler-type": "none",
            "service-cluster-ip-range": network.service_range if network else "10.233.0.0/24",
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "anonymous-auth": "false",
            "allow-privileged": "true",
            "client-ca-file": self.authority.ca,
            "tls-cert-file": self._server.certificate,
            "tls-private-key-file": self._server.key,
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": self._keys.certificate,
            "service-account-signing-key-file": self._keys.key,
        }
        if network:
            flags |= self._kubelet_client()
        if self.audit_log:
            flags |= {"audit-policy-file": AUDIT_POLICY, "audit-log-path": self.audit_log}
        self.launch("kube-apiserver", flags, f"{self._url('api')}/readyz")

    def _kubelet_client(self) -> dict[str, object]:
        name = "kube-apiserver-kubelet-client"
        pair = self.authority.issue(name, name, "system:masters")
        return {
            "kubelet-certificate-authority": self.authority.ca,
            "kubelet-client-certificate": pair.certificate,
            "kubelet-client-key": pair.key,
            "kubelet-preferred-address-types": "InternalIP",
        }

    def _controller(self, name: str, port: str) -> dict[str, object]:
        config = self.client(f"system:{name}")
        return {
            "kubeconfig": config,
            "authentication-kubeconfig": config,
            "authorization-kubeconfig": config,
            "bind-address": "127.0.0.1",
            "secure-port": self.ports[port],
            "tls-cert-file": self._server.certificate,
            "tls-private-key-file": self._server.key,
            "leader-elect": "false",
            "kube-api-qps": 500,
            "kube-api-burst": 1000,
        }

    def _controller_manager(self) -> None:
        name = "kube-controller-manager"
        flags = self._controller(name, "controller") | {
            "use-service-account-credentials": True,
            "root-ca-file": self.authority.ca,
            "service-account-private-key-file": self._keys.key,
            "concurrent-gc-syncs": 20,
            "concurrent-namespace-syncs": 10,
        }
        if self._network:
            flags |= {"node-monitor-period": "1s", "node-monitor-grace-period": "10s"}
        flags |= self._manager_flags
        self.launch(name, flags, f"{self._url('controller')}/healthz")
        account = f"{self._url('api')}/api/v1/namespaces/default/serviceaccounts/default"
        wait_until(self._probe(account), "the default account", self.book.find(name), self.book)


def _free_ports() -> dict[str, int]:
    """All at once, so that no two are the same."""
    with ExitStack() as stack:
        sockets = {name: stack.enter_context(socket.socket()) for name in PORTS}
        for one in sockets.values():
            one.bind(("127.0.0.1", 0))
        return {name: one.getsockname()[1] for name, one in sockets.items()}
