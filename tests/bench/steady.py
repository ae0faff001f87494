"""S3, S4, S5: what the operator writes, burns and holds while all beat and nothing changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass

from tests.bench.cost import cpu_of, since
from tests.bench.say import say
from tests.bench.scrape import Scrape
from tests.bench.stage import BareReader, Running, Stage


@dataclass(frozen=True, slots=True)
class Window:
    seconds: float
    beats: float
    read: int
    """Events that the bare reader saw in the same time."""
    passes: float
    passes_seconds: float
    cpu: dict[str, float]
    writes: dict[str, float]
    """By verb and resource, the leader's Lease left out."""
    resident: int


async def watch_window(
    stage: Stage, operator: Running, reader: BareReader, seconds: float
) -> Window:
    say(f"measuring for {seconds:.0f} s")
    pids = stage.programs | {"operator": operator.pid, "reader": reader.process.pid}
    before = await _look(operator, reader, pids)
    await asyncio.sleep(seconds)
    after = await _look(operator, reader, pids)
    told = after.told - before.told
    return Window(
        seconds=after.at - before.at,
        beats=told.total("beats_total"),
        read=after.read - before.read,
        passes=told.total("reconcile_total"),
        passes_seconds=told.total("reconcile_seconds_sum"),
        cpu=since(before.cpu, after.cpu),
        writes=told.writes(),
        resident=operator.resident,
    )


@dataclass(frozen=True, slots=True)
class _Look:
    told: Scrape
    read: int
    cpu: dict[str, float]
    at: float


async def _look(operator: Running, reader: BareReader, pids: Mapping[str, int]) -> _Look:
    """In the same order each time: on a busy machine the questions themselves take a while."""
    told, read = await operator.scrape(), await reader.count()
    return _Look(told, read, cpu_of(pids), time.monotonic())
