"""A door on this machine to the management API, for one browser.

The browser gets a pass for a code that works once; it never sees a Kubernetes token. A request that
carries the pass goes on with our token in its place. Other people of this machine reach the door
too, and so may a page of a stranger under a name of its own: for them there is only the sign-in.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from hmac import compare_digest
from http import HTTPStatus

import aiohttp
from aiohttp import web
from yarl import URL

CODE_SECONDS = 120.0
LOOPBACK = "127.0.0.1"
SENT = ("Accept", "Content-Type", "If-None-Match", "Last-Event-ID")
RETURNED = (
    *("Content-Type", "Content-Security-Policy", "Cache-Control", "ETag", "Date", "Retry-After"),
    *("Referrer-Policy", "X-Content-Type-Options", "X-Frame-Options", "Permissions-Policy"),
    *("Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy"),
)
Bearer = Callable[[], Awaitable[dict[str, str]]]
"""The header with our token."""


class Door:
    def __init__(
        self,
        target: Callable[[], str],
        bearer: Bearer,
        *,
        namespace: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target = target
        self._bearer = bearer
        self._namespace = namespace
        self._clock = clock
        self._until = clock() + CODE_SECONDS
        self._pass = secrets.token_urlsafe(32)
        self._code = secrets.token_urlsafe(32)
        self._line: aiohttp.ClientSession | None = None
        self.port = 0

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/"

    @property
    def link(self) -> str:
        """What follows # stays in the browser: no server is told, and the page removes it."""
        return f"{self.address}#code={self._code}"

    def application(self) -> web.Application:
        application = web.Application(middlewares=[self._known_host])
        application.router.add_post("/signin", self._sign_in)
        application.router.add_route("*", "/{path:.*}", self._pass_on)
        application.cleanup_ctx.append(self._lines)
        return application

    async def _lines(self, _application: web.Application) -> AsyncIterator[None]:
        async with aiohttp.ClientSession(auto_decompress=False, trust_env=False) as self._line:
            yield

    @web.middleware
    async def _known_host(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """A name that was made to point here is not ours."""
        if request.host not in {f"{LOOPBACK}:{self.port}", f"localhost:{self.port}"}:
            return _problem(HTTPStatus.FORBIDDEN, "this address is not known here")
        return await handler(request)

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        given, known, self._code = (await request.content.read(256)).decode(), self._code, ""
        own = request.headers.get("Origin") == f"http://{request.host}"
        if not (own and known and compare_digest(given, known) and self._clock() < self._until):
            # A wrong try ends it for all: whoever was first is not who was meant, or is a guess.
            return _problem(HTTPStatus.FORBIDDEN, "the code was used already, or is too old")
        return web.json_response({"token": self._pass, "namespace": self._namespace})

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        headers = {name: request.headers[name] for name in SENT if name in request.headers}
        if given := request.headers.get("Authorization"):
            if not compare_digest(given.encode(), f"Bearer {self._pass}".encode()):
                return _problem(HTTPStatus.UNAUTHORIZED, "this page was opened by another command")
            headers |= await self._bearer()
        url = URL(self._target() + request.rel_url.raw_path_qs, encoded=True)
        body = await request.read() if request.can_read_body else None
        assert self._line is not None  # noqa: S101 - for the type; it is there while we serve
        try:
            patience = aiohttp.ClientTimeout(total=None, sock_connect=10)
            async with self._line.request(
                request.method, url, headers=headers, data=body, timeout=patience
            ) as found:
                return await _return(request, found)
        except aiohttp.ClientError as error:
            return _problem(HTTPStatus.BAD_GATEWAY, f"the management API is away: {error}")


async def _return(request: web.Request, found: aiohttp.ClientResponse) -> web.StreamResponse:
    headers = {name: found.headers[name] for name in RETURNED if name in found.headers}
    answer = web.StreamResponse(status=found.status, headers=headers)
    await answer.prepare(request)
    async for piece in found.content.iter_any():
        await answer.write(piece)
    await answer.write_eof()
    return answer


def _problem(status: HTTPStatus, detail: str) -> web.Response:
    content = {"title": status.phrase, "status": status, "detail": detail}
    return web.Response(
        body=json.dumps(content).encode(), status=status, content_type="application/problem+json"
    )
