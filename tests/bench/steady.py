"""S3, S4, S5: what the operator writes, burns and holds while all beat and nothing changes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tests.bench.cost import cpu_of, since
from tests.bench.say import say
from tests.bench.scrape import Scrape
from tests.bench.stage import BareReader, Running, Stage

WRITES = frozenset({"create", "update", "patch", "delete"})
LEASE = "leases"


@dataclass(frozen=True, slots=True)
class Window:
    seconds: float
    beats: float
    read: int
    """Events that the bare reader saw in the same time."""
    passes: float
    cpu: dict[str, float]
    writes: dict[str, float]
    """By verb and resource, the leader's Lease left out."""
    resident: int


async def watch_window(
    stage: Stage, operator: Running, reader: BareReader, seconds: float
) -> Window:
    say(f"measuring for {seconds:.0f} s")
    pids = stage.programs | {"operator": operator.pid, "reader": reader.process.pid}
    scraped, read = await operator.scrape(), await reader.count()
    before = cpu_of(pids)
    await asyncio.sleep(seconds)
    cpu, resident = since(before, cpu_of(pids)), operator.resident
    told, read = await operator.scrape() - scraped, await reader.count() - read
    return Window(
        seconds=seconds,
        beats=told.total("beats_total"),
        read=read,
        passes=told.total("reconcile_total"),
        cpu=cpu,
        writes=_writes(told),
        resident=resident,
    )


def _writes(told: Scrape) -> dict[str, float]:
    return {
        f"{labels['verb']} {labels['resource']} {labels['code']}": count
        for labels, count in told.find("api_calls_total")
        if count and labels["verb"] in WRITES and labels["resource"] != LEASE
    }
