"""The load: every agent of a fleet beats once per interval, spread evenly over it.

One token and a few kept connections stand for all relays. A frozen agent's relay goes on as a real
one does: the same beat, growing older. `sent` is when an agent's newest beat went out, by the
clock of this process.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

from supervisor_operator.kube.cluster import HEARTBEATS, Object
from tests.bench.api import MERGE, NOT_FOUND, REFUSED, Api, path_of
from tests.bench.fleet import INTERVAL_SECONDS, pod_of

LINES = 8


class Beating:
    def __init__(
        self, api: Api, namespace: str, agents: Iterable[str], interval: float = INTERVAL_SECONDS
    ) -> None:
        self.sent: dict[str, float] = {}
        self.refused: Counter[int] = Counter()
        self._api = api
        self._namespace = namespace
        self._interval = interval
        self._sequence = dict.fromkeys(agents, 0)
        self._frozen: set[str] = set()
        self._due: asyncio.Queue[str] = asyncio.Queue()

    def freeze(self, agent: str) -> None:
        self._frozen.add(agent)

    def leave(self, agent: str) -> None:
        """Its pod ends: nothing is heard of it any more."""
        self._sequence.pop(agent, None)

    async def pace(self) -> None:
        """Put each agent in line when its time has come; a late round is not made up for."""
        while True:
            started = time.monotonic()
            agents = list(self._sequence)
            for number, agent in enumerate(agents):
                due = started + number * self._interval / len(agents)
                if (wait := due - time.monotonic()) > 0:
                    await asyncio.sleep(wait)
                self._due.put_nowait(agent)
            await asyncio.sleep(max(0.0, started + self._interval - time.monotonic()))

    async def relay(self) -> None:
        while True:
            agent = await self._due.get()
            if agent in self._sequence:
                await self._report(agent)

    async def _report(self, agent: str) -> None:
        is_new = agent not in self._frozen
        now = time.monotonic()
        beat_at = now if is_new else self.sent.get(agent, now)
        number = self._sequence[agent] + is_new
        path = path_of(HEARTBEATS, self._namespace, pod_of(agent), "status")
        status, _ = await self._api.ask("PATCH", path, _beat(number, now - beat_at), MERGE)
        if status < REFUSED:
            self.sent[agent] = beat_at
            if agent in self._sequence:
                self._sequence[agent] = number
        elif agent in self._sequence:
            self.refused[status] += 1
            if status == NOT_FOUND:
                self.leave(agent)


def _beat(number: int, age: float) -> Object:
    wall = time.clock_gettime(time.CLOCK_REALTIME)
    return {
        "status": {
            "sequence": number,
            "beatAgeMillis": int(age * 1000),
            "relayTime": _rfc3339(wall),
            "beatTime": _rfc3339(wall - age),
            "busySeconds": None,
            "problem": None,
        }
    }


def _rfc3339(wall: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(wall))


@asynccontextmanager
async def beating(
    api: Api, namespace: str, agents: Iterable[str], interval: float = INTERVAL_SECONDS
) -> AsyncIterator[Beating]:
    found = Beating(api, namespace, agents, interval)
    tasks = [asyncio.create_task(found.pace())]
    tasks += [asyncio.create_task(found.relay()) for _ in range(LINES)]
    try:
        yield found
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
