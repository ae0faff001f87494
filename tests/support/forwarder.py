"""A TCP forwarder on loopback: real connections that break when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Forwarder:
    """Carries bytes both ways while `open`; `cut` breaks what is there and refuses what comes."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._open = True
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    def cut(self) -> None:
        self._open = False
        for writer in self._writers:
            writer.transport.abort()

    def mend(self) -> None:
        self._open = True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._open:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection(*self._target)
        ends = {writer, back}
        self._writers |= ends
        await asyncio.gather(_carry(reader, back), _carry(there, writer))
        self._writers -= ends


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(2**16):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()


@asynccontextmanager
async def forwarder(host: str, port: int) -> AsyncIterator[Forwarder]:
    forwarder = Forwarder(host, port)
    running: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        running.add(asyncio.create_task(forwarder.serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    forwarder.port = server.sockets[0].getsockname()[1]
    async with server:
        yield forwarder
        server.close()
        forwarder.cut()
        await asyncio.gather(*running)
