"""The workers: take a key, make one pass, put the key back for its next look."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from supervisor_operator.errors import (
    ClusterError,
    ConflictError,
    LeadershipLostError,
    NotFoundError,
    QueueClosedError,
)
from supervisor_operator.observer import kind_of
from supervisor_operator.queue import Key, WorkQueue
from supervisor_operator.reconcile import NotYetError, Observer, Outcome

NOT_YET_SECONDS = 0.2
SLICES = 30
SLICE_KEYS = 50

_log = logging.getLogger(__name__)

Reconcile = Callable[[Key], Awaitable[Outcome]]


def name_of(key: Key) -> str:
    """A key as people call its object."""
    return f"{kind_of(key)} {key[0]}/{key[1]}"


async def work(queue: WorkQueue, reconcile: Reconcile, observer: Observer) -> None:
    """Until the queue is closed; only a lost leadership ends a worker before."""
    while True:
        try:
            key = await queue.get()
        except QueueClosedError:
            return
        try:
            await _pass(queue, reconcile, observer, key)
        finally:
            queue.done(key)
        await asyncio.sleep(0)  # a pass that found nothing to do did not let go of the loop


async def _pass(queue: WorkQueue, reconcile: Reconcile, observer: Observer, key: Key) -> None:
    about = {"object": name_of(key)}
    try:
        outcome = await reconcile(key)
    except NotYetError as error:
        _log.debug("%s", error, extra=about)
        queue.add_after(key, NOT_YET_SECONDS)
    except LeadershipLostError:
        raise
    except (ConflictError, NotFoundError) as error:
        # Somebody wrote in between, or it is gone: the watch brings the news, this is the belt.
        _log.debug("looking again: %s", error, extra=about)
        queue.retry(key)
    except ClusterError as error:
        delay = queue.retry(key, error.retry_after or 0.0)
        observer.failed(key, error)
        _log.warning("%s; again in %.1f s", error, delay, extra=about)
    except Exception as error:  # noqa: BLE001 - one bad object must not end a worker
        delay = queue.retry(key)
        observer.failed(key, error)
        _log.exception("this pass failed; again in %.1f s", delay, extra=about)
    else:
        if outcome.backs_off:
            queue.retry(key)
            return
        queue.forget(key)
        if outcome.check_in is not None:
            queue.rest(key, outcome.check_in)


class Resync:
    """Looks at everything now and then: heals what no event told, and obeys back-off.

    A large fleet is looked at slice by slice. Who `is_still` is passed over.
    """

    def __init__(
        self,
        queue: WorkQueue,
        keys: Callable[[], Sequence[Key]],
        seconds: float,
        is_still: Callable[[Key], bool] = lambda _key: False,
    ) -> None:
        self._queue = queue
        self._keys = keys
        self._seconds = seconds
        self._is_still = is_still
        self._loop = asyncio.get_running_loop()
        self.last = self._loop.time()

    async def run(self) -> None:
        while True:
            keys = self._keys()
            slices = max(1, min(SLICES, len(keys) // SLICE_KEYS))
            for number in range(slices):
                await asyncio.sleep(self._seconds / slices)
                # Of a single slice everybody, those who came meanwhile too.
                slice_of = keys[number::slices] if slices > 1 else self._keys()
                self._look_at(key for key in slice_of if not self._is_still(key))
            self.last = self._loop.time()

    def look_at_all(self) -> None:
        """At everybody, and now."""
        self._look_at(self._keys())

    def _look_at(self, keys: Iterable[Key]) -> None:
        for key in keys:
            if not self._queue.in_backoff(key):
                self._queue.add(key)

    def stalled(self) -> str | None:
        age = self._loop.time() - self.last
        limit = 3 * self._seconds
        return f"the last resync was {age:.0f} s ago" if age > limit else None
