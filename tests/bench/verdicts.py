"""S2: agents freeze at random moments; how long after its deadline is each one's verdict written?

Seen from outside: a watch of the Supervisors, minus the moment the last beat was sent and the
allowance. That is never less than the truth, since the watch itself takes time.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass

from supervisor_operator.kube.cluster import SUPERVISORS
from tests.bench.api import path_of
from tests.bench.beating import Beating
from tests.bench.fleet import ALLOWED_SECONDS
from tests.bench.patience import until
from tests.bench.say import say
from tests.bench.scrape import Scrape
from tests.bench.stage import Running, Stage

SPREAD_SECONDS = 40.0
LATE_SECONDS = 60.0
SEED = 5


@dataclass(frozen=True, slots=True)
class Verdicts:
    late: tuple[float, ...]
    """Seconds from each frozen agent's deadline to the verdict seen, in order."""
    wrongly: tuple[str, ...]
    """Agents that beat and were called unresponsive all the same."""
    told: Scrape


async def freeze_some(
    stage: Stage, namespace: str, beats: Beating, operator: Running, victims: Sequence[str]
) -> Verdicts:
    say(f"freezing {len(victims)} agents within {SPREAD_SECONDS:.0f} s")
    scraped = await operator.scrape()
    seen: dict[str, float] = {}

    async def are_found() -> bool:
        return set(victims) <= set(seen)

    watching = asyncio.create_task(_watch(stage, namespace, seen))
    try:
        await _freeze(beats, victims)
        await until(are_found, "a verdict on each", ALLOWED_SECONDS + LATE_SECONDS)
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    late = (seen[name] - beats.sent[name] - ALLOWED_SECONDS for name in victims)
    wrongly = tuple(sorted(set(seen) - set(victims)))
    return Verdicts(tuple(sorted(late)), wrongly, await operator.scrape() - scraped)


async def _freeze(beats: Beating, victims: Sequence[str]) -> None:
    chance = random.Random(SEED)  # noqa: S311 - the same moments in every run
    started = time.monotonic()
    moments = sorted(chance.uniform(0, SPREAD_SECONDS) for _ in victims)
    for name, moment in zip(victims, moments, strict=True):
        await asyncio.sleep(max(0.0, started + moment - time.monotonic()))
        beats.freeze(name)


async def _watch(stage: Stage, namespace: str, seen: dict[str, float]) -> None:
    async with aclosing(stage.api.watch(path_of(SUPERVISORS, namespace))) as events:
        async for event in events:
            now, item = time.monotonic(), event["object"]
            if (item.get("status") or {}).get("health") == "UNRESPONSIVE":
                seen.setdefault(item["metadata"]["name"], now)
