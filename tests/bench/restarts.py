"""S7: agents crash at random moments; how long beyond its delay does each one's next pod take?

Seen from outside, by one watch of the pods: the end of one run, the creation of the next.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Sequence
from contextlib import aclosing

from supervisor_operator.api.v1alpha1.agent import RestartPolicySpec
from supervisor_operator.core.ending import restart_delay
from supervisor_operator.kube.cluster import PODS, SUPERVISORS
from tests.bench.api import MERGE, path_of
from tests.bench.beating import Beating
from tests.bench.fleet import DELAY_SECONDS, pod_of
from tests.bench.say import BenchError, say
from tests.bench.stage import Stage

SPREAD_SECONDS = 10.0
PATIENCE_SECONDS = 60.0
SEED = 7
CRASH = {"metadata": {"labels": {"fake.test/exit-code": "1"}}}


async def crash_some(
    stage: Stage, namespace: str, beats: Beating, victims: Sequence[str]
) -> tuple[float, ...]:
    """Seconds beyond the configured delay, in order."""
    say(f"crashing {len(victims)} agents within {SPREAD_SECONDS:.0f} s")
    ended: dict[str, float] = {}
    created: dict[str, float] = {}
    delays = await _delays(stage, namespace, victims)
    try:
        async with asyncio.timeout(SPREAD_SECONDS + PATIENCE_SECONDS), asyncio.TaskGroup() as group:
            group.create_task(_watch(stage, namespace, victims, ended, created))
            await _crash(stage, namespace, beats, victims)
    except TimeoutError:
        raise BenchError(f"{len(created)} of {len(victims)} agents were started again") from None
    beyond = (created[name] - ended[name] - delays[name] for name in victims)
    return tuple(sorted(beyond))


async def _crash(stage: Stage, namespace: str, beats: Beating, victims: Sequence[str]) -> None:
    chance = random.Random(SEED)  # noqa: S311 - the same moments in every run
    started = time.monotonic()
    moments = sorted(chance.uniform(0, SPREAD_SECONDS) for _ in victims)
    for name, moment in zip(victims, moments, strict=True):
        await asyncio.sleep(max(0.0, started + moment - time.monotonic()))
        beats.leave(name)
        await stage.api.must("PATCH", path_of(PODS, namespace, pod_of(name)), CRASH, MERGE)


async def _watch(
    stage: Stage,
    namespace: str,
    victims: Sequence[str],
    ended: dict[str, float],
    created: dict[str, float],
) -> None:
    first = {pod_of(name): name for name in victims}
    second = {pod_of(name, run=2): name for name in victims}
    async with aclosing(stage.api.watch(path_of(PODS, namespace))) as events:
        async for event in events:
            now, item = time.monotonic(), event["object"]
            pod = item["metadata"]["name"]
            if pod in first and item["status"].get("phase") == "Failed":
                ended.setdefault(first[pod], now)
            elif pod in second:
                created.setdefault(second[pod], now)
                if len(created) == len(victims):
                    return


async def _delays(stage: Stage, namespace: str, victims: Sequence[str]) -> dict[str, float]:
    """The first restart's, with the jitter that comes from each one's UID."""
    policy = RestartPolicySpec(delay_seconds=DELAY_SECONDS)
    listed = json.loads(await stage.api.must("GET", path_of(SUPERVISORS, namespace)))
    uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in listed["items"]}
    return {name: restart_delay(policy, 0, uids[name], run=1) for name in victims}
