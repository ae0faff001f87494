"""Bounds on what callers may cost: requests per second, bytes per request; and headers for all."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from supervisor_api.problems import ProblemError, respond

REMEMBERED = 10_000
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Rate:
    """So many requests per second and caller; those who were quiet may send a burst."""

    def __init__(
        self,
        per_second: float,
        burst: int,
        clock: Callable[[], float],
        *,
        what: str = "requests per second",
    ) -> None:
        self._what = what
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def knows(self, who: bytes) -> bool:
        return who in self._buckets

    def forget(self, who: bytes) -> None:
        self._buckets.pop(who, None)

    def take(self, who: bytes) -> None:
        now = self._clock()
        left, at = self._buckets.get(who, (float(self._burst), now))
        left = min(self._burst, left + (now - at) * self._per_second)
        if left < 1:
            wait = max(1, round((1 - left) / self._per_second))
            raise ProblemError(
                429,
                f"more than {self._per_second:g} {self._what}",
                "Wait as long as Retry-After says; read /snapshot and /events instead of polling.",
                headers={"Retry-After": str(wait)},
            )
        self._buckets[who] = (left - 1, now)
        self._buckets.move_to_end(who)
        while len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)


class SecurityHeaders:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class BodyLimit:
    """Ends the reading of a body that is too long, said or not."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = dict(scope["headers"]).get(b"content-length", b"0")
        if said.isdigit() and int(said) > self._limit:
            error = ProblemError(413, self._words, "Send less.", headers={"Connection": "close"})
            await respond(error.problem, error.headers)(scope, receive, send)
            return
        seen = 0

        async def receive_some() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit:
                # The one kind of error that FastAPI lets through while it reads a body.
                raise HTTPException(413, self._words, {"Connection": "close"})
            return message

        await self._app(scope, receive_some, send)

    @property
    def _words(self) -> str:
        return f"the body is longer than {self._limit} bytes"
