"""What every scene plays on: a cluster with the operator's install, a client, an operator."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from supervisor_operator.kube.burst import HOLD_SECONDS
from supervisor_operator.kube.cluster import NAMESPACES
from tests.bench.api import NOT_FOUND, Api, open_api
from tests.bench.cost import resident_bytes
from tests.bench.patience import until
from tests.bench.say import BenchError, say
from tests.bench.scrape import Scrape
from tests.cluster.local import Cluster
from tests.cluster.processes import Book
from tests.cluster.ways import open_cluster
from tests.support.install import NAMESPACE, install, operator_kubeconfig
from tests.support.kubeconfig import read_kubeconfig
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess
from tests.support.tokens import view_kubeconfig

MANAGER_FLAGS = {"kube-api-qps": 1000, "kube-api-burst": 2000, "concurrent-job-syncs": 20}
PRODUCTION = (
    "--leader-elect=true",
    f"--lease-namespace={NAMESPACE}",
    "--resync-seconds=30",
    "--log-level=info",
    "--log-format=json",
)
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "kwok")
LOADER = "bench-loader"
NAMESPACE_PATH = f"{NAMESPACES.prefix}/{NAMESPACES.plural}"
GONE_SECONDS = 300.0
ACTIVE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Stage:
    cluster: Cluster
    api: Api
    folder: Path
    access: Path
    """Kubeconfig of the operator's own account."""
    programs: dict[str, int]

    async def make_namespace(self, name: str) -> str:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self.api.must("POST", NAMESPACE_PATH, body)
        return name

    async def clear(self, namespace: str) -> None:
        """Delete the namespace and wait until nothing of it is left to disturb what follows."""
        say(f"clearing {namespace}")
        path = f"{NAMESPACE_PATH}/{namespace}"
        await self.api.must("DELETE", path)

        async def is_gone() -> bool:
            return (await self.api.ask("GET", path))[0] == NOT_FOUND

        await until(is_gone, f"{namespace} is gone", GONE_SECONDS)

    @asynccontextmanager
    async def operator(self, *flags: str) -> AsyncIterator[Running]:
        log = self.folder / "operator.log"
        process = OperatorProcess(self.access, log, *PRODUCTION, *flags, born=False)
        try:
            await asyncio.to_thread(process.start().ready)
            yield Running(process)
            await asyncio.to_thread(process.stop)
        finally:
            process.kill()


@dataclass(frozen=True, slots=True)
class Running:
    """The operator at work."""

    process: OperatorProcess

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def resident(self) -> int:
        return resident_bytes(self.pid)

    async def scrape(self) -> Scrape:
        return Scrape.of(await asyncio.to_thread(self.process.get, "/metrics"))

    def settled(self) -> Callable[[], Awaitable[bool]]:
        """Asks whether nothing waits, nor was written for longer than a status is ever held."""
        last: dict[str, float] = {}
        since = time.monotonic()

        async def is_settled() -> bool:
            nonlocal last, since
            told, now = await self.scrape(), time.monotonic()
            if told.writes() != last:
                last, since = told.writes(), now
            return told.total("queue_depth") == 0 and now - since > HOLD_SECONDS

        return is_settled

    async def until_active(self, count: int, seconds: float = ACTIVE_SECONDS) -> None:
        async def is_active() -> bool:
            return (await self.scrape()).total("supervisors", phase="ACTIVE") == count

        await until(is_active, f"{count} agents are ACTIVE", seconds, every=1)


@asynccontextmanager
async def open_stage() -> AsyncIterator[Stage]:
    with (
        open_cluster("fake", manager_flags=MANAGER_FLAGS) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        if cluster.folder is None or cluster.way != "local":
            raise BenchError("the bench reads the processes of a cluster of its own: unset CLUSTER")
        install(cluster)
        place = Path(folder)
        access = read_kubeconfig(_loader_kubeconfig(cluster, place), place)
        book = Book(Path(cluster.folder))
        async with open_api(access) as api:
            yield Stage(
                cluster=cluster,
                api=api,
                folder=place,
                access=operator_kubeconfig(cluster, place),
                programs={name: book.find(name).pid for name in PROGRAMS},
            )


def _loader_kubeconfig(cluster: Cluster, folder: Path) -> Path:
    """The load comes with a token of a cluster-admin: * includes the verb beat-for-others."""
    kubectl = Kubectl(cluster, NAMESPACE)
    kubectl("create", "serviceaccount", LOADER)
    account = f"--serviceaccount={NAMESPACE}:{LOADER}"
    kubectl("create", "clusterrolebinding", LOADER, "--clusterrole=cluster-admin", account)
    config = view_kubeconfig(kubectl)
    token = kubectl("create", "token", LOADER, "--duration=12h").out.strip()
    config["users"][0]["user"] = {"token": token}
    path = folder / "loader.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return path


@asynccontextmanager
async def bare_reader(stage: Stage) -> AsyncIterator[BareReader]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.reader", str(stage.access)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield BareReader(process)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@dataclass(frozen=True, slots=True)
class BareReader:
    process: asyncio.subprocess.Process

    async def count(self) -> int:
        """How many events it has read."""
        asking, answering = self.process.stdin, self.process.stdout
        if asking is None or answering is None:
            raise BenchError("the bare reader has no way to answer")
        asking.write(b"\n")
        return int(await asyncio.wait_for(answering.readline(), 30))
