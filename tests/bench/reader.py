"""The comparator of S4: reads the Heartbeats' watch with the operator's client, and only counts.

Run as a process of its own. Each line on its input is answered with the events read so far.
"""

from __future__ import annotations

import asyncio
import sys

from supervisor_operator.core.words import MANAGED_SELECTOR
from supervisor_operator.kube.client import open_cluster
from supervisor_operator.kube.cluster import HEARTBEATS, Cluster


class Reader:
    def __init__(self) -> None:
        self._count = 0

    async def read(self, cluster: Cluster) -> None:
        revision = (await cluster.list(HEARTBEATS, None, selector=MANAGED_SELECTOR)).revision
        while True:
            watch = cluster.watch(HEARTBEATS, None, revision, selector=MANAGED_SELECTOR)
            async with watch as events:
                async for event in events:
                    revision = event["object"]["metadata"]["resourceVersion"]
                    self._count += event["type"] != "BOOKMARK"

    async def answer(self) -> None:
        questions = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(questions), sys.stdin)
        while await questions.readline():
            print(self._count, flush=True)


async def main(kubeconfig: str) -> None:
    reader = Reader()
    async with open_cluster(kubeconfig) as cluster:
        cluster.breaths = {}
        reading = asyncio.create_task(reader.read(cluster))
        answering = asyncio.create_task(reader.answer())
        await asyncio.wait({reading, answering}, return_when=asyncio.FIRST_COMPLETED)
        reading.cancel()
        answering.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
