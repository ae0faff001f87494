"""Beating from a Python agent, in three forms that stop when the agent's own loop hangs.

None of them beats for its own sake. A thread that beats on a timer stays alive while the agent
hangs; here the thread only writes down what the agent's loop noted.
"""

import math
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from supervise import beatfile, clock
from supervise.beatfile import File, Metric
from supervise.contract import INTERVAL_VARIABLE

if TYPE_CHECKING:
    import asyncio

USUAL_INTERVAL = 7.5  # a quarter of the usual timeout


class Heartbeat:
    """Beats into the heartbeat file.

    `with Heartbeat() as heart`: call `heart.beat()` in the loop of the agent.
    `with Heartbeat(thread=True) as heart`: the same, but a thread does the writing.
    `async with Heartbeat()`: the agent's own event loop beats, and stops when it is blocked.
    """

    def __init__(
        self,
        path: File | None = None,
        *,
        interval: float | None = None,
        thread: bool = False,
    ) -> None:
        self._path = path or beatfile.default_file()
        self._interval = interval or float(os.environ.get(INTERVAL_VARIABLE) or USUAL_INTERVAL)
        # Fast loops may beat as often as they like; the disk sees at most one write a second.
        self._pause = min(self._interval / 4, 1.0)
        self._written = -self._pause
        self._metrics: dict[str, Metric] = {}
        self._busy_until = -math.inf
        self._failing = False
        self._writer = threading.Thread(target=self._write_noted, daemon=True) if thread else None
        self._noted = threading.Event()
        self._closed = threading.Event()
        self._task: asyncio.Task[None] | None = None

    def beat(self, metrics: Mapping[str, Metric] | None = None) -> None:
        """Say that the agent's loop came round; metrics are kept until they are given again."""
        if metrics is not None:
            beatfile.check(metrics)  # here, where the agent sees it, not in the thread that writes
            self._metrics = dict(metrics)
        if self._writer:
            self._noted.set()
        elif clock.monotonic() - self._written >= self._pause:
            self._write()

    @contextmanager
    def busy(self, seconds: float) -> Iterator[None]:
        """Announce a step of at most so many seconds in which no beat will come."""
        self._busy_until = clock.monotonic() + seconds
        self._write()
        try:
            yield
        finally:
            self._busy_until = -math.inf
            self._write()

    def __enter__(self) -> Self:
        # The first beat may raise: a wrong path should be seen at once.
        self._write_now()
        if self._writer:
            self._writer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed.set()
        self._noted.set()
        if self._writer:
            self._writer.join()

    async def __aenter__(self) -> Self:
        import asyncio  # noqa: PLC0415 - whoever needs it has it; others need not pay

        self._write_now()
        self._task = asyncio.create_task(self._beat_on_the_loop(), name="heartbeat")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import asyncio  # noqa: PLC0415

        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _beat_on_the_loop(self) -> None:
        import asyncio  # noqa: PLC0415

        while True:
            await asyncio.sleep(self._interval)
            self._write()

    def _write_noted(self) -> None:
        while self._noted.wait() and not self._closed.is_set():
            self._noted.clear()
            self._write()
            self._closed.wait(self._pause)

    def _write(self) -> None:
        try:
            self._write_now()
        except OSError as error:
            self._complain(error)
        else:
            self._failing = False

    def _write_now(self) -> None:
        now = clock.monotonic()
        beatfile.write(self._path, self._metrics, max(self._busy_until - now, 0.0))
        self._written = now

    def _complain(self, error: OSError) -> None:
        """Log once per outage: a full disk must not end the agent's work, nor pass unseen."""
        if not self._failing:
            import logging  # noqa: PLC0415 - seldom needed

            self._failing = True
            logging.getLogger("supervise").warning("cannot beat: %s", error)
