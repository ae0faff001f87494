"""A light client for the load: kept connections, one token, bytes in and out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import aiohttp

from supervisor_operator.kube.cluster import Object, Resource
from supervisor_operator.kube.wire import Call
from supervisor_operator.kube.wire import events as lines
from tests.bench.say import BenchError, say
from tests.support.kubeconfig import Access

JSON = "application/json"
MERGE = "application/merge-patch+json"
AT_ONCE = 32
WATCH_SECONDS = 3600
REFUSED = 300
NOT_FOUND = 404


def path_of(resource: Resource, namespace: str, *rest: str) -> str:
    return "/".join((resource.prefix, "namespaces", namespace, resource.plural, *rest))


class Api:
    def __init__(self, access: Access, session: aiohttp.ClientSession) -> None:
        self.watches_ended = 0
        """How often the server ended a watch, as it does to readers that are too slow."""
        self._server = access.server
        self._session = session

    async def ask(
        self, method: str, path: str, body: Object | None = None, kind: str = JSON
    ) -> tuple[int, bytes]:
        """The status and the body of the answer, whatever it is."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": kind}
        url = self._server + path
        async with self._session.request(method, url, data=data, headers=headers) as answer:
            return answer.status, await answer.read()

    async def must(
        self, method: str, path: str, body: Object | None = None, kind: str = JSON
    ) -> bytes:
        status, answer = await self.ask(method, path, body, kind)
        if status >= REFUSED:
            raise BenchError(f"{method} {path}: {status} {answer[:300]!r}")
        return answer

    async def create_all(self, path: str, items: Iterable[Object]) -> None:
        await at_once(self.must("POST", path, item) for item in items)

    async def watch(self, path: str, **query: str) -> AsyncGenerator[Object]:
        """What there is as ADDED, then every change; begins anew where the server ends it."""
        while True:
            async with aclosing(self._watch_once(path, query)) as events:
                async for event in events:
                    yield event
            self.watches_ended += 1
            say(f"the watch of {path} was ended: watching anew")

    async def _watch_once(self, path: str, query: dict[str, str]) -> AsyncGenerator[Object]:
        asked = {"watch": "true", "timeoutSeconds": str(WATCH_SECONDS)} | query
        call = Call("watch", path, path, asked)
        patience = aiohttp.ClientTimeout(total=None)
        url = self._server + call.url
        async with self._session.get(url, timeout=patience) as answer:
            if answer.status >= REFUSED:
                raise BenchError(f"watch of {path}: {answer.status} {await answer.text()}")
            async with aclosing(lines(call, answer)) as found:
                async for event in found:
                    yield event


@asynccontextmanager
async def open_api(access: Access) -> AsyncIterator[Api]:
    connector = aiohttp.TCPConnector(ssl=access.context, limit=0)
    headers = {"Authorization": f"Bearer {access.token}", "User-Agent": "bench", "Accept": JSON}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield Api(access, session)


async def at_once(work: Iterable[Coroutine[Any, Any, Any]], limit: int = AT_ONCE) -> None:
    """Do all of it, so many at a time."""
    waiting = iter(work)

    async def worker() -> None:
        for one in waiting:
            await one

    async with asyncio.TaskGroup() as group:
        for _ in range(limit):
            group.create_task(worker())
