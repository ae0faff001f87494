"""S1, S10, S11: a whole fleet applied at once, until all its pods run, and what that cost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from supervisor_operator.kube.cluster import PODS, Object, Resource
from tests.bench.api import path_of
from tests.bench.cost import cpu_of, since
from tests.bench.patience import until
from tests.bench.say import BenchError, say
from tests.bench.stage import Stage

IDLE_SECONDS = 5.0
LOOK_SECONDS = 2.0
PATIENCE_SECONDS = 300.0
PATIENCE_EACH = 0.1


@dataclass(frozen=True, slots=True)
class BringUp:
    """`running_at` is each pod's moment, from the first request on; CPU is in seconds."""

    running_at: tuple[float, ...]
    cpu: Mapping[str, float]

    @property
    def per_second(self) -> float:
        return len(self.running_at) / self.running_at[-1]

    def millis_each(self, program: str) -> float:
        return 1000 * self.cpu[program] / len(self.running_at)


async def bring_up(  # noqa: PLR0913 - what, where, by whom, until when
    stage: Stage,
    namespace: str,
    resource: Resource,
    items: Sequence[Object],
    *,
    pids: Mapping[str, int],
    is_settled: Callable[[], Awaitable[bool]],
) -> BringUp:
    """CPU counts until the controller has no more to do, less what idleness costs anyway."""
    say(f"bringing up {len(items)} {resource.plural} in {namespace}")
    before_idle, idle_from = cpu_of(pids), time.monotonic()
    await asyncio.sleep(IDLE_SECONDS)
    idle, idled = since(before_idle, cpu_of(pids)), time.monotonic() - idle_from
    async with asyncio.TaskGroup() as group:
        before, started = cpu_of(pids), time.monotonic()
        running = group.create_task(_all_running(stage, namespace, len(items), started))
        await stage.api.create_all(path_of(resource, namespace), items)
        applied = time.monotonic() - started
    patience = _patience(len(items))
    await until(is_settled, f"{resource.plural} are settled", patience, LOOK_SECONDS)
    spent, took = since(before, cpu_of(pids)), time.monotonic() - started
    cpu = {name: used - idle[name] * took / idled for name, used in spent.items()}
    found = BringUp(tuple(running.result()), cpu)
    if len(found.running_at) != len(items):
        raise BenchError(f"{len(found.running_at)} pods were counted, not {len(items)}")
    say(f"applied after {applied:.1f} s, all run after {found.running_at[-1]:.1f} s")
    return found


def _patience(count: int) -> float:
    return max(PATIENCE_SECONDS, PATIENCE_EACH * count)


async def _all_running(stage: Stage, namespace: str, count: int, started: float) -> list[float]:
    seen: dict[str, float] = {}
    path = path_of(PODS, namespace)
    try:
        async with (
            asyncio.timeout(_patience(count)),
            aclosing(stage.api.watch(path, fieldSelector="status.phase=Running")) as events,
        ):
            async for event in events:
                seen.setdefault(event["object"]["metadata"]["name"], time.monotonic() - started)
                if len(seen) == count:
                    break
    except TimeoutError:
        raise BenchError(
            f"{len(seen)} of {count} pods in {namespace} run after {_patience(count):.0f} s"
        ) from None
    return sorted(seen.values())
