"""Connections that stand still are ended: uvicorn alone would wait for them for ever.

Looked at every 20 seconds. Whoever owes us the same request at two looks is too slow in asking;
whoever has taken nothing of a waiting answer in between is not reading. Neither needs a token to
hold memory and a socket of ours, so their number is bounded too.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

import h11
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

UNASKED = (h11.IDLE, h11.SEND_BODY)


class PatientProtocol(H11Protocol):
    look_seconds: ClassVar[float] = 20.0
    most: ClassVar[int] = 4096

    _look: asyncio.TimerHandle
    _answered: RequestResponseCycle | None = None
    """The request before the one that was owed at the last look."""
    _owed = False
    _left: int | None = None
    """Bytes that were not taken at the last look, if none was taken since."""

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look = self.loop.call_later(self.look_seconds, self._judge)
        if len(self.connections) > self.most:
            transport.abort()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._look.cancel()
        super().connection_lost(exc)

    @override
    def resume_writing(self) -> None:
        self._left = None
        super().resume_writing()

    def _judge(self) -> None:
        if self._owes() or self._is_stuck():
            self.transport.abort()
            return
        self._look = self.loop.call_later(self.look_seconds, self._judge)

    def _owes(self) -> bool:
        """The same request as at the last look, and still not all of it."""
        rests = self.timeout_keep_alive_task is not None or self.transport.get_write_buffer_size()
        owed = self.conn.their_state in UNASKED and not rests
        same = owed and self._owed and self._answered is self.cycle
        self._owed, self._answered = owed, self.cycle
        return same

    def _is_stuck(self) -> bool:
        waits = self.flow.write_paused or self.transport.is_closing()
        left = self.transport.get_write_buffer_size() if waits else None
        same = left is not None and left == self._left
        self._left = left
        return same
