"""Roll-ups keep a distance: the first at once, then one per period however much changes below."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from supervisor_operator.kube.cluster import SUPERVISORS
from supervisor_operator.kube.customs import Customs
from supervisor_operator.queue import WorkQueue
from supervisor_operator.ripples import ROLL_UP_SECONDS, Ripples

pytestmark = pytest.mark.looptime

BOSS = ("default", "boss")


class Above:
    """Notes when the one above is looked at."""

    def __init__(self) -> None:
        self.queue = WorkQueue()
        customs = Customs(SUPERVISORS, lambda _: None)
        self.ripples = Ripples(self.queue, customs, lambda: datetime(2026, 11, 18, tzinfo=UTC))
        self.looks: list[float] = []

    async def run(self) -> None:
        while True:
            key = await self.queue.get()
            self.looks.append(round(asyncio.get_running_loop().time(), 1))
            self.queue.done(key)

    async def hear(self, every: float, times: int, *, is_urgent: bool = False) -> None:
        for _ in range(times):
            self.ripples._roll_up(BOSS, is_urgent=is_urgent)
            await asyncio.sleep(every)


async def looks_after(*, urgent: bool = False) -> list[float]:
    above = Above()
    worker = asyncio.create_task(above.run())
    await above.hear(0.5, 12)
    if urgent:
        await above.hear(0.5, 1, is_urgent=True)
        await above.hear(0.5, 1)
    await asyncio.sleep(3 * ROLL_UP_SECONDS)
    worker.cancel()
    return above.looks


async def test_the_first_at_once_then_one_per_period() -> None:
    assert await looks_after() == [0.0, 5.0, 10.0]


async def test_an_urgent_one_does_not_wait_and_swallows_no_later_change() -> None:
    assert await looks_after(urgent=True) == [0.0, 5.0, 6.0, 10.0]
