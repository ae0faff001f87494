"""An API server on loopback that says what it is told to say, in that order, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass(slots=True)
class ApiServer:
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _answers: deque[Answer] = field(default_factory=deque)
    _closing: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def last(self) -> Asked:
        return self.asked[-1]

    def says(self, body: Any, status: int = 200, **headers: str) -> None:
        """The next answer; text goes out as it is, everything else as JSON."""
        text = body if isinstance(body, str) else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}

        async def answer(_: web.Request) -> web.Response:
            return web.Response(text=text, status=status, headers=named)

        self._answers.append(answer)

    def refuses(self, code: int, reason: str, message: str, **headers: str) -> None:
        self.says(a_status(code, reason, message), code, **headers)

    def streams(self, *events: Any, then: str = "end") -> None:
        """The next answer is a watch; then it ends well, is cut, or falls silent."""

        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            for event in events:
                raw = event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n"
                await response.write(raw)
            if then == "cut" and request.transport:
                request.transport.close()
            elif then == "silence":
                await self._closing.wait()
            return response

        self._answers.append(answer)

    def hangs_up(self) -> None:
        """The next request gets no answer but a closed connection."""

        async def answer(request: web.Request) -> web.Response:
            if request.transport:
                request.transport.close()
            return web.Response()

        self._answers.append(answer)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        headers = dict(request.headers)
        query = dict(request.query)
        self.asked.append(Asked(request.method, request.path, query, headers, body))
        self.arrived.set()
        return await self._answers.popleft()(request)

    def close(self) -> None:
        self._closing.set()


@asynccontextmanager
async def api_server() -> AsyncIterator[ApiServer]:
    server = ApiServer()
    application = web.Application(client_max_size=2**24)
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        server.close()
        await runner.cleanup()


def a_status(code: int, reason: str, message: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


def a_kubeconfig(folder: Path, server: str, user: dict[str, Any]) -> str:
    """A kubeconfig file of one cluster and one user."""
    file = folder / "kubeconfig"
    here = "here"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": here,
        "clusters": [{"name": here, "cluster": {"server": server}}],
        "users": [{"name": here, "user": user}],
        "contexts": [{"name": here, "context": {"cluster": here, "user": here}}],
    }
    file.write_text(json.dumps(content))
    return str(file)
