"""The workers: take a key, make one pass, put the key back for its next look."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from supervisor_operator.errors import (
    ClusterError,
    ConflictError,
    LeadershipLostError,
    NotFoundError,
    QueueClosedError,
)
from supervisor_operator.kube.cluster import SUPERVISORS
from supervisor_operator.queue import Key, WorkQueue
from supervisor_operator.reconcile import NotYetError, Observer, Outcome

NOT_YET_SECONDS = 0.2

_log = logging.getLogger(__name__)

Reconcile = Callable[[Key], Awaitable[Outcome]]


def name_of(key: Key) -> str:
    """A key as people call its object; without a kind it is a Supervisor."""
    kind = key[2] if len(key) > len(("namespace", "name")) else SUPERVISORS.kind
    return f"{kind} {key[0]}/{key[1]}"


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
        delay = queue.retry(key)
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
            queue.add_after(key, outcome.check_in)


class Resync:
    """Looks at everything now and then: heals what no event told, and obeys back-off."""

    def __init__(self, queue: WorkQueue, keys: Callable[[], Iterable[Key]], seconds: float) -> None:
        self._queue = queue
        self._keys = keys
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self.last = self._loop.time()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            self.look_at_all()
            self.last = self._loop.time()

    def look_at_all(self) -> None:
        for key in self._keys():
            if not self._queue.in_backoff(key):
                self._queue.add(key)

    def stalled(self) -> str | None:
        age = self._loop.time() - self.last
        limit = 3 * self._seconds
        return f"the last resync was {age:.0f} s ago" if age > limit else None
