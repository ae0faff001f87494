"""Waiting that ends: for a condition, and not longer than is said."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.bench.say import BenchError


async def until(
    condition: Callable[[], Awaitable[bool]], what: str, seconds: float, every: float = 0.5
) -> None:
    try:
        async with asyncio.timeout(seconds):
            while True:
                if await condition():
                    return
                await asyncio.sleep(every)
    except TimeoutError:
        raise BenchError(f"{what}: not within {seconds:.0f} s") from None
