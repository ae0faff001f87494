"""Connections that stand still, on real sockets: they end, and those that move do not."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from supervisor_api.__main__ import listen
from supervisor_api.patience import PatientProtocol

LOOK = 0.2
LONG = 24 * 1024 * 1024
PIECE = 256 * 1024


class Hasty(PatientProtocol):
    look_seconds = LOOK
    most = 2


class Application:
    """Answers at once with what was sent, or with more than any socket holds."""

    def __init__(self) -> None:
        self.left = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while (message := await receive()).get("more_body"):
            body += message["body"]
        answer = bytes(LONG) if scope["path"] == "/long" else body + message.get("body", b"")
        head = [(b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": answer})
        await receive()
        self.left.set()


@asynccontextmanager
async def serving(
    application: Application, protocol: type[PatientProtocol] = Hasty
) -> AsyncIterator[int]:
    listening = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        application, http=protocol, ws="none", lifespan="off", log_config=None, access_log=False
    )
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        await task


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: ",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc",
    ],
)
async def test_a_request_that_never_ends_is_not_waited_for(begun: bytes) -> None:
    async with serving(Application()) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(begun)
        with contextlib.suppress(ConnectionResetError):
            async with asyncio.timeout(30):
                while await reader.read(PIECE):
                    pass
        writer.close()


async def test_who_takes_nothing_of_an_answer_is_gone() -> None:
    application = Application()
    async with serving(application) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readexactly(1)
        async with asyncio.timeout(30):
            await application.left.wait()
        with contextlib.suppress(ConnectionError):
            assert len(await reader.read(-1)) < LONG
        writer.close()


async def test_who_takes_it_slowly_gets_all_of_it() -> None:
    async with serving(Application()) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        begun, seen = asyncio.get_running_loop().time(), 0
        while seen < LONG:
            seen += len(await reader.readexactly(min(LONG - seen, 2 * 1024 * 1024)))
            await asyncio.sleep(LOOK / 2)
        assert asyncio.get_running_loop().time() - begun > 4 * LOOK, "many looks have passed"
        writer.close()


async def test_no_connection_waits_for_the_readers_word() -> None:
    """Nagle's algorithm made each short answer 40 ms late."""
    seen: list[int] = []

    class Noted(Hasty):
        @override
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            line = transport.get_extra_info("socket")
            seen.append(line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            super().connection_made(transport)

    async with serving(Application(), Noted) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await reader.read(8) == b"HTTP/1.1"
        writer.close()
    assert seen == [1]


async def test_there_is_an_end_to_their_number() -> None:
    async with serving(Application()) as port:
        lines = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        with contextlib.suppress(ConnectionResetError):
            assert await lines[2][0].read(1) == b""
        for _, writer in lines:
            writer.close()
