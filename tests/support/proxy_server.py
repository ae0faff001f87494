"""The part of the test proxy that lives on an event loop: it passes requests on, or does not.

Writes go through one at a time, so that their log is in the order in which the server saw them
and a client killed at one of them has written exactly that many.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import aiohttp
from aiohttp import hdrs, web
from multidict import CIMultiDict
from yarl import URL

from tests.support.api_call import Call, read_call, status_object
from tests.support.kubeconfig import Access
from tests.support.proxy_troubles import (
    RETRY_AFTER_SECONDS,
    Delay,
    Loss,
    Unrest,
    at_revision,
    longest,
    name_in,
    shuffled,
)

WAIT_SECONDS = 30.0
_LONGEST_EVENT = 2**22
_LONGEST_BODY = 2**24
_PASSES_TO_SETTLE = 20
_HOP_BY_HOP = {
    hdrs.CONNECTION,
    hdrs.CONTENT_LENGTH,
    hdrs.HOST,
    hdrs.KEEP_ALIVE,
    hdrs.TRANSFER_ENCODING,
}

Action = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Write:
    """A mutating request; status is the answer, None where there was none."""

    number: int
    verb: str
    path: str
    status: int | None
    body_digest: str
    user_agent: str
    name: str = ""
    """Of the object that is created; all other paths end in it."""


@dataclass(slots=True)
class Refusal:
    """Answers the calls of its rule in the server's place; times=None is for ever."""

    rule: Callable[[Call], bool]
    status: int
    message: str
    times: int | None
    retry_after: int | None = None
    refused: int = 0

    def takes(self, call: Call) -> bool:
        if (self.times is not None and self.refused >= self.times) or not self.rule(call):
            return False
        self.refused += 1
        return True


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that was ordered and will happen once."""

    what: str
    _event: threading.Event = field(default_factory=threading.Event)

    @property
    def happened(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float = WAIT_SECONDS) -> None:
        if not self._event.wait(seconds):
            raise TimeoutError(f"{self.what}: did not happen within {seconds:g} s")

    def mark(self) -> None:
        self._event.set()


class ProxyServer:
    """Passes requests on; what tests want to happen to them stands in its fields."""

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self.changed = threading.Condition()
        self.refusals: list[Refusal] = []
        self.gone: dict[str, list[Happening]] = {}
        self.before: dict[int, list[Action]] = {}
        self.after: dict[int, list[Action]] = {}
        self.onlookers: dict[str, list[Callable[[Write], None]]] = {"before": [], "after": []}
        self.pumps: dict[asyncio.Task[web.StreamResponse], str] = {}
        self.errors: list[Exception] = []
        self.losses: list[Loss] = []
        self.delays: list[Delay] = []
        self.unrest: Unrest | None = None
        self.past: dict[str, str] = {}
        self.orders: dict[str, int] = {}
        self.kept: dict[tuple[str, str], dict[web.StreamResponse, bytes]] = {}
        self._gates: dict[str, asyncio.Event] = {}
        self._era = 0

    async def start(self, access: Access) -> int:
        self._writing = asyncio.Lock()
        self._access = access
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=access.context, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            read_bufsize=_LONGEST_EVENT,
        )
        app = web.Application(client_max_size=_LONGEST_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        pumps = list(self.pumps)
        self.cut("")
        await asyncio.gather(*pumps, return_exceptions=True)
        await self._runner.cleanup()
        await self._session.close()
        await _settle()

    def gate(self, plural: str) -> asyncio.Event:
        """Open unless a test holds it."""
        if plural not in self._gates:
            self._gates[plural] = asyncio.Event()
            self._gates[plural].set()
        return self._gates[plural]

    def cut(self, plural: str) -> int:
        pumps = [pump for pump, found in self.pumps.items() if plural in ("", found)]
        for pump in pumps:
            pump.cancel()
        return len(pumps)

    async def drop_clients(self) -> None:
        # What a dead client has sent may still lie in sockets: let it become requests first.
        await _settle()
        self._era += 1
        for connection in self._runner.server.connections if self._runner.server else ():
            if connection.transport:
                connection.transport.abort()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        call = read_call(request.method, request.rel_url, request.headers.get(hdrs.USER_AGENT, ""))
        with self._changing():
            self.counts[call.verb, call.plural, call.user_agent] += 1
        fate, status = self.unrest.fate(call) if self.unrest else ("fine", 0)
        if fate == "refused":
            return _refuse(status, "the API server is not well", RETRY_AFTER_SECONDS)
        if fate == "broken":
            return _break(request)
        try:
            if call.verb == "watch":
                return await self._watch(request, call)
            body = await request.read()
            if call.is_write:
                # A client that leaves does not take back what it wrote.
                response = await asyncio.shield(self._write(request, call, body))
            else:
                response = await self._answer(request, call, body)
        except aiohttp.ClientError:
            return _break(request)
        is_lost = fate == "lost" or any(loss.takes(call) for loss in self.losses)
        return _break(request) if is_lost else response

    async def _write(self, request: web.Request, call: Call, body: bytes) -> web.Response:
        era = self._era
        async with self._writing:
            if era != self._era:
                return _break(request)
            digest = hashlib.sha256(body).hexdigest()[:16]
            number = len(self.writes) + 1
            name = _name_in(body) if call.verb == "create" else ""
            write = Write(number, call.verb, call.path, None, digest, call.user_agent, name)
            self._log(write)
            await self._run_hooks(self._hooks("before", write))
            if era != self._era:
                return _break(request)
            response = await self._answer(request, call, body)
            write = replace(write, status=response.status)
            self._log(write)
            await self._run_hooks(self._hooks("after", write))
            return response if era == self._era else _break(request)

    def _log(self, write: Write) -> None:
        with self._changing():
            self.writes[write.number - 1 :] = [write]

    def _hooks(self, when: str, write: Write) -> list[Action]:
        ordered = (self.before if when == "before" else self.after).pop(write.number, [])
        return [*ordered, *(partial(onlooker, write) for onlooker in self.onlookers[when])]

    async def _run_hooks(self, actions: list[Action]) -> None:
        for action in actions:
            try:
                await asyncio.to_thread(action)
            except Exception as error:  # noqa: BLE001 - the test is told at the end
                self.errors.append(error)

    async def _answer(self, request: web.Request, call: Call, body: bytes) -> web.Response:
        if refusal := self._refusal(call):
            return refusal
        await asyncio.sleep(longest(self.delays, call))
        async with self._ask(request, body, call) as answer:
            text = await answer.read()
            if call.verb == "list" and call.plural in self.orders and answer.ok:
                text = shuffled(text, self.orders[call.plural])
            return web.Response(status=answer.status, body=text, headers=_passed_on(answer.headers))

    def _refusal(self, call: Call) -> web.Response | None:
        for refusal in self.refusals:
            if refusal.takes(call):
                return _refuse(refusal.status, refusal.message, refusal.retry_after)
        return None

    def _ask(
        self, request: web.Request, body: bytes, call: Call
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        headers = _passed_on(request.headers)
        if self._access.token:
            headers[hdrs.AUTHORIZATION] = f"Bearer {self._access.token}"
        url = URL(self._access.server + request.raw_path, encoded=True)
        if call.verb == "list" and call.plural in self.past:
            url = at_revision(url, self.past[call.plural])
        return self._session.request(request.method, url, headers=headers, data=body or None)

    async def _watch(self, request: web.Request, call: Call) -> web.StreamResponse:
        if refusal := self._refusal(call):
            return refusal
        if call.revision not in ("", "0") and self.gone.get(call.plural):
            self.gone[call.plural].pop(0).mark()
            event = {"type": "ERROR", "object": status_object(410, "too old resource version")}
            return web.Response(text=json.dumps(event) + "\n", content_type="application/json")
        pump = asyncio.create_task(self._pump(request, call))
        try:
            with self._changing():
                self.pumps[pump] = call.plural
            await asyncio.wait([pump])
        finally:
            pump.cancel()
            with self._changing():
                del self.pumps[pump]
        return _break(request) if pump.cancelled() else pump.result()

    async def _pump(self, request: web.Request, call: Call) -> web.StreamResponse:
        """Event by event, each through the gate."""
        async with self._ask(request, b"", call) as answer:
            response = web.StreamResponse(status=answer.status, headers=_passed_on(answer.headers))
            await response.prepare(request)
            try:
                async for line in answer.content:
                    await self.gate(call.plural).wait()
                    if not self._keeps(call.plural, line, response):
                        await response.write(line)
            finally:
                for kept in self.kept.values():
                    kept.pop(response, None)
                if answer.connection and answer.connection.transport:
                    answer.connection.transport.abort()
            return response

    def _keeps(self, plural: str, line: bytes, response: web.StreamResponse) -> bool:
        """Whether a test holds this object's events back: then only the newest is known."""
        if not self.kept or (plural, name_in(line)) not in self.kept:
            return False
        with self._changing():
            self.kept[plural, name_in(line)][response] = line
        return True

    async def release_last(self, plural: str, name: str) -> None:
        for response, line in self.kept.pop((plural, name), {}).items():
            await response.write(line)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self.changed:
            yield
            self.changed.notify_all()


def _name_in(body: bytes) -> str:
    try:
        return str(json.loads(body)["metadata"]["name"])
    except (ValueError, KeyError, TypeError):
        return ""


def _passed_on(headers: Mapping[str, str]) -> CIMultiDict[str]:
    return CIMultiDict(
        (name, value) for name, value in headers.items() if name.title() not in _HOP_BY_HOP
    )


def _refuse(status: int, message: str, retry_after: int | None) -> web.Response:
    headers = {} if retry_after is None else {hdrs.RETRY_AFTER: str(retry_after)}
    return web.json_response(status_object(status, message), status=status, headers=headers)


async def _settle() -> None:
    """Let the event loop get through whatever sockets and callbacks hold right now."""
    for _ in range(_PASSES_TO_SETTLE):
        await asyncio.sleep(0)


def _break(request: web.Request) -> web.Response:
    """End the connection without an answer, as a broken line does."""
    if request.transport:
        request.transport.abort()
    return web.Response()
