"""Roll-ups keep a distance: the first at once, then one per period however much changes below."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from supervisor_operator.core.observed import PodView
from supervisor_operator.core.pods import view_pod
from supervisor_operator.kube.cluster import SUPERVISORS, TEAMS
from supervisor_operator.kube.customs import Customs
from supervisor_operator.kube.family import Family
from supervisor_operator.kube.observe import World
from supervisor_operator.kube.store import Store
from supervisor_operator.kube.teams import Teams
from supervisor_operator.queue import Key, WorkQueue
from supervisor_operator.ripples import ROLL_UP_SECONDS, Ripples
from tests.support.builders import a_supervisor, a_team


def stored(item: dict[str, Any]) -> dict[str, Any]:
    name = item["metadata"]["name"]
    more = {"namespace": "default", "uid": f"uid-of-{name}", "resourceVersion": "1"}
    return item | {"metadata": {"name": name} | more}


pytestmark = pytest.mark.looptime

BOSS = ("default", "boss")


class Above:
    """Notes when the one above is looked at."""

    def __init__(self) -> None:
        self.queue = WorkQueue()
        self.customs = Customs(SUPERVISORS, lambda _: None)
        self.ripples = Ripples(self.queue, self.customs, lambda: datetime(2026, 11, 18, tzinfo=UTC))
        self.looks: list[float] = []
        self.keys: list[Key] = []

    async def run(self) -> None:
        while True:
            key = await self.queue.get()
            self.keys.append(key)
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


async def test_a_team_tells_its_members_at_once_and_who_leads_it_now_and_then() -> None:
    above = Above()
    supervisors, teams = above.customs, Customs(TEAMS, lambda _: None)
    pods: Store[PodView] = Store(view_pod, lambda pod: pod.owner)
    found = Teams(teams, supervisors, pods, Family(supervisors, pods))
    above.ripples.world = cast("World", SimpleNamespace(teams=found))
    for name in ("boss", "hello"):
        supervisors.take(None, stored(a_supervisor(name)))
    ref = {"name": "x", "ref": {"name": "hello"}}
    teams.take(None, stored(a_team("crew", members=[ref], supervisorRef={"name": "boss"})))
    worker = asyncio.create_task(above.run())
    for _ in range(12):
        above.ripples.on_team(("default", "crew"))
        await asyncio.sleep(0.5)
    await asyncio.sleep(3 * ROLL_UP_SECONDS)
    worker.cancel()
    looked_at = Counter(key[1] for key in above.keys)
    assert looked_at == {"crew": 12, "hello": 12, "boss": 3}


async def test_the_first_at_once_then_one_per_period() -> None:
    assert await looks_after() == [0.0, 5.0, 10.0]


async def test_an_urgent_one_does_not_wait_and_swallows_no_later_change() -> None:
    assert await looks_after(urgent=True) == [0.0, 5.0, 6.0, 10.0]
