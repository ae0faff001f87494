"""`python -m tests.bench.asking`: what each write of an agent's start costs the API server.

The operator brings up one agent and is stopped. What it wrote is then written again for many, one
kind of request at a time, so that nothing else is in the figure but the API server's own watchers.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from supervisor_operator.kube.cluster import EVENTS, HEARTBEATS, PODS, SUPERVISORS, Object, Resource
from tests.bench.api import at_once, path_of
from tests.bench.bringup import IDLE_SECONDS
from tests.bench.cost import cpu_seconds
from tests.bench.fleet import a_beating_agent, names, pod_of
from tests.bench.patience import until
from tests.bench.say import say
from tests.bench.stage import Stage, open_stage

REQUESTS = 500
SETTLE_SECONDS = 2.0
NOBODY = "nobody"
"""No scheduler of this name: the pods are written, and nothing more happens to them."""
Write = Callable[[str], Coroutine[Any, Any, bytes]]


@dataclass(frozen=True, slots=True)
class Asker:
    stage: Stage
    namespace: str

    async def cost(self, what: str, write: Write) -> str:
        """CPU of the API server, less what it spends anyway, as a row of the table."""
        pid = self.stage.programs["kube-apiserver"]
        say(f"{what}: {REQUESTS} times")
        before_idle, idle_from = cpu_seconds(pid), time.monotonic()
        await asyncio.sleep(IDLE_SECONDS)
        before, started = cpu_seconds(pid), time.monotonic()
        await at_once(write(name) for name in names(REQUESTS))
        await asyncio.sleep(SETTLE_SECONDS)
        spent, took = cpu_seconds(pid) - before, time.monotonic() - started
        idle = (before - before_idle) / (started - idle_from)
        return f"| {what} | {1000 * (spent - idle * took) / REQUESTS:.2f} ms |"

    async def read(self, resource: Resource, name: str) -> Object:
        answer = await self.stage.api.must("GET", path_of(resource, self.namespace, name))
        found: Object = json.loads(answer)
        return found

    async def list(self, resource: Resource) -> list[Object]:
        answer = await self.stage.api.must("GET", path_of(resource, self.namespace))
        found: list[Object] = json.loads(answer)["items"]
        return found

    def create(self, resource: Resource, like: Object) -> Write:
        path = path_of(resource, self.namespace)
        return lambda name: self.stage.api.must("POST", path, renamed(like, name))

    async def put_status(self, resource: Resource, status: Object) -> Write:
        """On the objects that are there by now."""
        items = {item["metadata"]["name"]: item for item in await self.list(resource)}

        def write(name: str) -> Coroutine[Any, Any, bytes]:
            path = path_of(resource, self.namespace, name, "status")
            return self.stage.api.must("PUT", path, items[name] | {"status": status})

        return write


def renamed(like: Object, name: str) -> Object:
    """The same object by another name, without what the server adds to one that is there."""
    kept = ("namespace", "labels", "annotations", "ownerReferences")
    metadata = {key: like["metadata"][key] for key in kept if key in like["metadata"]}
    return like | {"metadata": metadata | {"name": name}}


async def main() -> int:
    async with open_stage() as stage:
        asker = Asker(stage, await stage.make_namespace("bench-asking"))
        first = "first"
        async with stage.operator() as operator:
            path = path_of(SUPERVISORS, asker.namespace)
            await stage.api.must("POST", path, a_beating_agent(first))

            async def is_told() -> bool:
                return bool(await asker.list(EVENTS)) and bool(
                    (await asker.read(PODS, pod_of(first)))["status"].get("startTime")
                )

            await until(is_told, "the first agent runs and is told of", 60)
            await until(operator.settled(), "the operator has no more to do", 60)
        agent = await asker.read(SUPERVISORS, first)
        pod = await asker.read(PODS, pod_of(first))
        pod["spec"].pop("nodeName")
        pod["spec"]["schedulerName"] = NOBODY
        beat = await asker.read(HEARTBEATS, pod_of(first))
        event = (await asker.list(EVENTS))[-1]
        rows = [
            await asker.cost("create a Supervisor", asker.create(SUPERVISORS, agent)),
            await asker.cost(
                "its status, PUT", await asker.put_status(SUPERVISORS, agent["status"])
            ),
            await asker.cost("create its pod", asker.create(PODS, pod)),
            await asker.cost("create its Heartbeat", asker.create(HEARTBEATS, beat)),
            await asker.cost("an Event", asker.create(EVENTS, event)),
        ]
    print("\n".join(["| request | API-server CPU |", "| --- | --- |", *rows]))
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
