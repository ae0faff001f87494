"""`python -m tests.bench.management`: reads of the management API beside the API server's own.

One cluster, one client, one run: the same list and the same objects are read through both, each
for the same time with the same number of connections. Then many readers follow the stream.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp

from supervisor_operator.core.states import State
from supervisor_operator.kube.cluster import SUPERVISORS
from tests.bench.api import MERGE, Api, at_once, open_api, path_of
from tests.bench.cost import resident_bytes
from tests.bench.patience import until
from tests.bench.say import BenchError, say
from tests.cluster.ways import open_cluster
from tests.support.builders import a_supervisor
from tests.support.health_stories import STORIES, told
from tests.support.kubeconfig import read_kubeconfig
from tests.support.kubectl import Kubectl
from tests.support.management import (
    allow_everything,
    api_kubeconfig,
    install_api,
    make_account,
    serving,
    write_kubeconfig,
)

NAMESPACE = "bench-management"
CONNECTIONS = 4
STREAM_CHANGES = 20
STREAMS = ("--max-streams=10000", "--max-streams-per-token=10000")
KIB = 1024
Get = Callable[[str], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class Reads:
    """One way of reading, in seconds per answer."""

    name: str
    per_second: float
    p50: float
    p99: float
    size: int

    def line(self) -> str:
        return (
            f"{self.name:<36} {self.per_second:10.1f}/s   p50 {self.p50 * 1000:8.1f} ms   "
            f"p99 {self.p99 * 1000:8.1f} ms   {self.size:>10} bytes"
        )


async def measure(name: str, get: Get, paths: Sequence[str], seconds: float) -> Reads:
    took: list[float] = []
    size = 0

    async def read_on(offset: int) -> None:
        nonlocal size
        turn = offset
        while time.perf_counter() < end:
            started = time.perf_counter()
            size = len(await get(paths[turn % len(paths)]))
            took.append(time.perf_counter() - started)
            turn += CONNECTIONS

    await get(paths[0])
    begun = time.perf_counter()
    end = begun + seconds
    await asyncio.gather(*(read_on(number) for number in range(CONNECTIONS)))
    spent = time.perf_counter() - begun
    ordered = sorted(took)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    found = Reads(name, len(took) / spent, statistics.median(took), p99, size)
    say(found.line())
    return found


async def fill(api: Api, count: int) -> list[str]:
    """Agents with the status that the operator writes of one that is well."""
    names = [f"agent-{number:05}" for number in range(count)]
    say(f"making {count} agents")
    await api.create_all(
        path_of(SUPERVISORS, NAMESPACE), (a_supervisor(name, config={"n": 1}) for name in names)
    )
    status = told(STORIES[State.RUNNING]()).item["status"] | {"observedGeneration": 1}
    body = {"status": status}
    await at_once(
        api.must("PATCH", path_of(SUPERVISORS, NAMESPACE, name, "status"), body, MERGE)
        for name in names
    )
    return names


async def follow(
    session: aiohttp.ClientSession, url: str, ready: asyncio.Semaphore, wanted: int
) -> list[tuple[str, float]]:
    """Cause and arrival of so many changes."""
    found: list[tuple[str, float]] = []
    async with session.get(url, timeout=aiohttp.ClientTimeout(total=None)) as answer:
        if answer.status != HTTPStatus.OK:
            raise BenchError(f"stream: {answer.status}")
        async for line in answer.content:
            if line.startswith(b"event: ready"):
                ready.release()
            elif line.startswith(b"data: ") and b'"supervisor"' in line:
                data: Any = json.loads(line[6:])
                found.append((data["supervisor"]["cause"], time.perf_counter()))
                if len(found) == wanted:
                    break
    return found


async def stream(
    base: str, session: aiohttp.ClientSession, api: Api, name: str, readers: int
) -> list[float]:
    """Seconds from a change's answer by the API server to each reader's having read it."""
    ready = asyncio.Semaphore(0)
    url = f"{base}/api/v1/events?namespace={NAMESPACE}"
    tasks = [
        asyncio.create_task(follow(session, url, ready, STREAM_CHANGES)) for _ in range(readers)
    ]
    for _ in range(readers):
        await ready.acquire()
    say(f"{readers} readers follow the stream")
    written: dict[str, float] = {}
    path = path_of(SUPERVISORS, NAMESPACE, name, "status")
    conditions = told(STORIES[State.RUNNING]()).item["status"]["conditions"]
    for number in range(STREAM_CHANGES):
        words = f"change {number}"
        changed = [
            one | {"message": words} if one["type"] == "Ready" else one for one in conditions
        ]
        await api.must("PATCH", path, {"status": {"conditions": changed}}, MERGE)
        written[words] = time.perf_counter()
        await asyncio.sleep(0.2)  # changes of their own, not one burst
    arrived = await asyncio.gather(*tasks)
    return sorted(max(0.0, at - written[words]) for seen in arrived for words, at in seen)


async def run(options: argparse.Namespace, folder: Path) -> None:
    with open_cluster("control") as cluster:
        install_api(cluster)
        kubectl = Kubectl(cluster, NAMESPACE)
        kubectl("create", "namespace", NAMESPACE)
        token = make_account(kubectl, "reader")
        allow_everything(kubectl, "reader")
        access = read_kubeconfig(write_kubeconfig(cluster, token, folder / "reader"), folder)
        flags = ("--requests-per-second=1000000", "--burst=1000000", *STREAMS)
        with serving(api_kubeconfig(cluster, folder), folder, *flags) as process:
            base = f"http://127.0.0.1:{process.port}"
            async with open_api(access) as api, _session(token) as session:
                await play(options, api, session, base, process.pid)


def _session(token: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {token}"}, connector=aiohttp.TCPConnector(limit=0)
    )


async def play(
    options: argparse.Namespace, api: Api, session: aiohttp.ClientSession, base: str, pid: int
) -> None:
    async def ours(path: str) -> bytes:
        async with session.get(base + path) as answer:
            content = await answer.read()
            if answer.status != HTTPStatus.OK:
                raise BenchError(f"{path}: {answer.status} {content[:200]!r}")
            return content

    async def servers(path: str) -> bytes:
        return await api.must("GET", path)

    snapshot = f"/api/v1/snapshot?namespace={NAMESPACE}"
    await ours(snapshot)
    empty = resident_bytes(pid)
    names = await fill(api, options.agents)

    async def is_whole() -> bool:
        found: Any = json.loads(await ours(snapshot))
        phases = [str(one["phase"]) for one in found["supervisors"]]
        return phases.count("ACTIVE") == int(options.agents)

    await until(is_whole, "the index is whole", 120)
    objects = path_of(SUPERVISORS, NAMESPACE)
    seconds = options.seconds
    rows = [
        await measure("GET /snapshot", ours, [snapshot], seconds),
        await measure("the same LIST by the API server", servers, [objects], seconds),
        await measure(
            "GET …/health",
            ours,
            [f"/api/v1/namespaces/{NAMESPACE}/supervisors/{name}/health" for name in names],
            seconds,
        ),
        await measure(
            "GET of the same by the API server",
            servers,
            [f"{objects}/{name}" for name in names],
            seconds,
        ),
    ]
    full = resident_bytes(pid)
    late = await stream(base, session, api, names[0], options.readers)
    p99 = late[int(len(late) * 0.99)]
    print(f"{options.agents} agents, {CONNECTIONS} connections, {seconds:g} s each")
    for row in rows:
        print(row.line())
    print(f"snapshot ÷ LIST, reads per second: {rows[0].per_second / rows[1].per_second:.1f}")
    print(f"health ÷ GET, reads per second: {rows[2].per_second / rows[3].per_second:.1f}")
    print(f"memory: {empty / KIB**2:.0f} MiB empty, {full / KIB**2:.0f} MiB full,", end=" ")
    print(f"{(full - empty) / KIB / options.agents:.1f} KiB per agent")
    print(
        f"stream: {options.readers} readers, {STREAM_CHANGES} changes, {len(late)} arrivals, "
        f"p50 {statistics.median(late) * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms"
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.management", description=__doc__)
    parser.add_argument("--agents", type=int, default=10_000, help="how many (%(default)d)")
    parser.add_argument("--readers", type=int, default=500, help="of the stream (%(default)d)")
    parser.add_argument("--seconds", type=float, default=10.0, help="per figure (%(default)g)")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        try:
            asyncio.run(run(options, Path(folder)))
        except (BenchError, TimeoutError) as error:
            print(f"bench: {error or 'not done in time'}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
