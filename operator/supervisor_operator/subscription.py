"""One reader of a stream: a bounded queue that would rather name a gap than grow or wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from typing_extensions import override

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Gap:
    """Stands where events were left out, the newest of them at this version of the snapshot."""

    version: int


class Subscription(AsyncIterator[T | Gap], Generic[T]):
    """Iterate over it; it ends with `close`, or when there will be no more events."""

    def __init__(self, size: int, on_close: Callable[[Subscription[T]], None]) -> None:
        self._size = size
        self._on_close = on_close
        self._waiting: deque[T | Gap] = deque()
        self._news = asyncio.Event()
        self._closed = False

    def push(self, event: T, gap: Gap) -> None:
        """Take an event, or where too many wait, the gap that stands for it."""
        if self._closed:
            return
        if len(self._waiting) < self._size:
            self._waiting.append(event)
        elif isinstance(self._waiting[-1], Gap):
            self._waiting[-1] = gap
        else:
            self._waiting.append(gap)
        self._news.set()

    def push_gap(self, gap: Gap) -> None:
        """Events were left out before the first one."""
        self._waiting.append(gap)
        self._news.set()

    def close(self) -> None:
        """End the stream; what waits can still be read."""
        self._closed = True
        self._on_close(self)
        self._news.set()

    @override
    async def __anext__(self) -> T | Gap:
        while not self._waiting:
            if self._closed:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()
