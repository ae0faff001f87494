"""S6: an operator that starts among a whole fleet, against the three LISTs it cannot do without."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from supervisor_operator.kube.cluster import HEARTBEATS, PODS, SUPERVISORS
from tests.bench.api import path_of
from tests.bench.patience import until
from tests.bench.say import say
from tests.bench.stage import Running, Stage

PATIENCE_SECONDS = 600.0
LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class ColdStart:
    lists: float
    """Seconds for the three LISTs, whole, read and parsed one after the other."""
    until_idle: float
    """Seconds from the start of the process until each Supervisor had a pass and none waits."""
    resident: int

    @property
    def ratio(self) -> float:
        return self.until_idle / self.lists


async def plain_lists(stage: Stage, namespace: str) -> float:
    started = time.monotonic()
    for resource in (SUPERVISORS, PODS, HEARTBEATS):
        json.loads(await stage.api.must("GET", path_of(resource, namespace)))
    return time.monotonic() - started


@asynccontextmanager
async def cold_start(
    stage: Stage, namespace: str, agents: int, *flags: str
) -> AsyncIterator[tuple[Running, ColdStart]]:
    """An operator among agents that are there already; it runs until the context ends."""
    say("starting the operator among the whole fleet")
    lists = await plain_lists(stage, namespace)
    started = time.monotonic()
    async with stage.operator(*flags) as operator:

        async def is_idle() -> bool:
            told = await operator.scrape()
            is_done = told.total("reconcile_total", kind="Supervisor", result="ok") >= agents
            return is_done and told.total("queue_depth") == 0

        await until(is_idle, "the queue is empty", PATIENCE_SECONDS, LOOK_SECONDS)
        took = time.monotonic() - started
        say(f"idle after {took:.1f} s; the plain LISTs took {lists:.1f} s")
        yield operator, ColdStart(lists, took, operator.resident)
