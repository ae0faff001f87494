"""Puts the programs together to a cluster on loopback, and takes it apart again."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.cluster import places
from tests.cluster.certificates import Authority, Pair
from tests.cluster.errors import ClusterError
from tests.cluster.processes import Book, Process, this_process
from tests.cluster.programs import find_programs
from tests.cluster.tiers import programs_of

READY_SECONDS = 60.0
POLL = 0.05
PORTS = ("etcd", "peer", "api", "controller", "scheduler", "kwok")
SERVICE_RANGE = "10.233.0.0/24"
SERVER_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
    "10.233.0.1",
)
FAKE = Path(__file__).parent / "fake"
AUDIT_POLICY = Path(__file__).parent / "audit-policy.yaml"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster to talk to, whoever runs it."""

    tier: str
    way: str
    kubeconfig: str
    kubectl: str
    folder: str | None = None
    audit_log: str | None = None


def load(folder: Path) -> Cluster | None:
    """The cluster of a folder; None where none was started to the end."""
    try:
        return Cluster(**json.loads((folder / "cluster.json").read_text()))
    except (FileNotFoundError, NotADirectoryError):
        return None


def start(folder: Path, tier: str, *, kept: bool, audit: bool = False) -> Cluster:
    """Start a cluster in a folder; whatever fails half-way is taken down again."""
    paths = find_programs(programs_of(tier))
    clear_orphans()
    folder.mkdir(parents=True)
    owner = None if kept else asdict(this_process())
    (folder / "owner.json").write_text(json.dumps(owner))
    try:
        cluster = _Starter(folder, tier, paths, audit=audit).run()
    except BaseException:
        stop(folder)
        raise
    (folder / "cluster.json").write_text(json.dumps(asdict(cluster)))
    return cluster


def stop(folder: Path) -> None:
    """End all processes of a folder and remove it; also right for what is half there."""
    Book(folder).stop_all()
    shutil.rmtree(folder, ignore_errors=True)


def clear_orphans() -> list[Path]:
    """Take down the clusters whose starter is dead."""
    gone = [folder for folder in _folders() if _is_orphan(folder)]
    for folder in gone:
        stop(folder)
    return gone


def clear_all() -> list[Path]:
    """Take down every cluster of this user, the kept ones too."""
    gone = _folders()
    for folder in gone:
        stop(folder)
    return gone


def _folders() -> list[Path]:
    root = places.clusters()
    return sorted(root.iterdir()) if root.exists() else []


def _is_orphan(folder: Path) -> bool:
    try:
        owner = json.loads((folder / "owner.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return not folder.name.startswith("kept-")
    if owner is None:
        return False
    return not Process(**owner).alive


class _Starter:
    """One start, in the order etcd, API server, CRDs, controllers, fake nodes."""

    def __init__(self, folder: Path, tier: str, paths: dict[str, Path], *, audit: bool) -> None:
        self._folder = folder
        self._tier = tier
        self._paths = paths
        self._book = Book(folder)
        self._ports = _free_ports()
        self._authority = Authority(folder / "pki")
        self._keys = self._authority.service_account_keys()
        self._server = self._authority.issue("server", "kube-apiserver", sans=SERVER_NAMES)
        self._audit = folder / "audit.log" if audit else None
        self._admin = self._client("admin", "system:masters")

    def run(self) -> Cluster:
        self._etcd()
        self._api_server()
        self._kubectl("apply", "--server-side", "-f", str(places.CRDS))
        self._controller_manager()
        if self._tier == "fake":
            self._scheduler()
            self._fake_nodes()
        return Cluster(
            tier=self._tier,
            way="local",
            kubeconfig=str(self._admin),
            kubectl=str(self._paths["kubectl"]),
            folder=str(self._folder),
            audit_log=str(self._audit) if self._audit else None,
        )

    def _client(self, name: str, group: str | None = None) -> Path:
        pair = self._authority.issue(name.replace(":", "-"), name, group)
        server = f"https://127.0.0.1:{self._ports['api']}"
        path = self._folder / f"{name.rpartition(':')[2]}.kubeconfig"
        return self._authority.kubeconfig(path, server, pair)

    def _start(self, name: str, flags: dict[str, object], ready: str, *, tls: bool = True) -> None:
        words = [
            f"--{key}" if value is True else f"--{key}={value}" for key, value in flags.items()
        ]
        process = self._book.start(name, [str(self._paths[name]), *words])
        admin = Pair(self._folder / "pki/admin.crt", self._folder / "pki/admin.key")
        probe = _Probe(ready, self._authority.ca if tls else None, admin)
        self._wait(process, f"{name} at {ready}", probe)

    def _wait(self, process: Process, what: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not ready():
            if not process.alive:
                raise self._book.died(process)
            if time.monotonic() > deadline:
                logs = self._folder / "logs"
                raise ClusterError(f"{what} was not ready within {READY_SECONDS:.0f} s: see {logs}")
            time.sleep(POLL)

    def _etcd(self) -> None:
        client = f"http://127.0.0.1:{self._ports['etcd']}"
        peer = f"http://127.0.0.1:{self._ports['peer']}"
        flags: dict[str, object] = {
            "data-dir": self._folder / "etcd",
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
        self._start("etcd", flags, f"{client}/health", tls=False)

    def _api_server(self) -> None:
        flags: dict[str, object] = {
            "etcd-servers": f"http://127.0.0.1:{self._ports['etcd']}",
            "bind-address": "127.0.0.1",
            "secure-port": self._ports["api"],
            "advertise-address": "127.0.0.1",
            "endpoint-reconciler-type": "none",
            "service-cluster-ip-range": SERVICE_RANGE,
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "anonymous-auth": "false",
            "allow-privileged": "true",
            "client-ca-file": self._authority.ca,
            "tls-cert-file": self._server.certificate,
            "tls-private-key-file": self._server.key,
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": self._keys.certificate,
            "service-account-signing-key-file": self._keys.key,
        }
        if self._audit:
            flags |= {"audit-policy-file": AUDIT_POLICY, "audit-log-path": self._audit}
        self._start("kube-apiserver", flags, f"https://127.0.0.1:{self._ports['api']}/readyz")

    def _controller(self, name: str, port: str) -> dict[str, object]:
        config = self._client(f"system:{name}")
        return {
            "kubeconfig": config,
            "authentication-kubeconfig": config,
            "authorization-kubeconfig": config,
            "bind-address": "127.0.0.1",
            "secure-port": self._ports[port],
            "tls-cert-file": self._server.certificate,
            "tls-private-key-file": self._server.key,
            "leader-elect": "false",
            "kube-api-qps": 500,
            "kube-api-burst": 1000,
        }

    def _controller_manager(self) -> None:
        flags = self._controller("kube-controller-manager", "controller") | {
            "use-service-account-credentials": True,
            "root-ca-file": self._authority.ca,
            "service-account-private-key-file": self._keys.key,
            "concurrent-gc-syncs": 20,
            "concurrent-namespace-syncs": 10,
        }
        ready = f"https://127.0.0.1:{self._ports['controller']}/healthz"
        self._start("kube-controller-manager", flags, ready)
        account = f"https://127.0.0.1:{self._ports['api']}/api/v1/namespaces/default/serviceaccounts/default"
        admin = Pair(self._folder / "pki/admin.crt", self._folder / "pki/admin.key")
        self._wait(
            self._book.read()[-1], "the default account", _Probe(account, self._authority.ca, admin)
        )

    def _scheduler(self) -> None:
        ready = f"https://127.0.0.1:{self._ports['scheduler']}/healthz"
        self._start("kube-scheduler", self._controller("kube-scheduler", "scheduler"), ready)

    def _fake_nodes(self) -> None:
        port = self._ports["kwok"]
        flags: dict[str, object] = {
            "kubeconfig": self._client("kwok", "system:masters"),
            "config": FAKE / "stages.yaml",
            "manage-all-nodes": "false",
            "manage-nodes-with-label-selector": "fake.test/node=true",
            "node-ip": "127.0.0.1",
            "cidr": "127.64.0.0/16",
            "node-lease-duration-seconds": 40,
            "server-address": f"127.0.0.1:{port}",
            "node-port": port,
        }
        self._start("kwok", flags, f"http://127.0.0.1:{port}/healthz", tls=False)
        self._kubectl("apply", "--server-side", "-f", str(FAKE / "nodes.yaml"))
        self._kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")

    def _kubectl(self, *arguments: str) -> None:
        command = [str(self._paths["kubectl"]), f"--kubeconfig={self._admin}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ClusterError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")


class _Probe:
    """Asks an address until it answers 200."""

    def __init__(self, url: str, ca: Path | None, client: Pair) -> None:
        self._url = url
        self._context = None
        if ca:
            self._context = ssl.create_default_context(cafile=str(ca))
            self._context.load_cert_chain(client.certificate, client.key)

    def __call__(self) -> bool:
        try:
            with urllib.request.urlopen(self._url, timeout=2, context=self._context):  # noqa: S310
                return True
        except (urllib.error.URLError, OSError):
            return False


def _free_ports() -> dict[str, int]:
    """All at once, so that no two are the same."""
    with ExitStack() as stack:
        sockets = {name: stack.enter_context(socket.socket()) for name in PORTS}
        for one in sockets.values():
            one.bind(("127.0.0.1", 0))
        return {name: one.getsockname()[1] for name, one in sockets.items()}
