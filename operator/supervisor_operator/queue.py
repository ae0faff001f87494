"""The work queue: the stage between whatever notices a change and the pass that looks at it.

A key is an order to look, not a message, so any number of orders for one key are one. A key waits
(now), is delayed (later) or is neither; the earliest order wins and swallows the others, because
the pass it leads to asks for its next look itself. While a key is worked on, new orders are kept
until the worker is done with it.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator

from supervisor_operator.backoff import backoff
from supervisor_operator.errors import QueueClosedError

Key = tuple[str, ...]
"""(namespace, name) or (namespace, name, kind)."""

_STALE_ALLOWED = 64


class _Waiting:
    """Keys that may be worked on now, handed out namespace by namespace in turn."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, OrderedDict[Key, float]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: Key) -> bool:
        return key in self._turns.get(key[0], ())

    def push(self, key: Key, now: float) -> None:
        self._turns.setdefault(key[0], OrderedDict())[key] = now
        self._count += 1

    def pop(self) -> Key:
        namespace, keys = next(iter(self._turns.items()))
        key, _ = keys.popitem(last=False)
        self._count -= 1
        if keys:
            self._turns.move_to_end(namespace)
        else:
            del self._turns[namespace]
        return key

    def oldest(self) -> float | None:
        return min((next(iter(keys.values())) for keys in self._turns.values()), default=None)


class _Delayed:
    """Keys with a time, in one heap; entries that no longer hold are dropped as they surface."""

    def __init__(self) -> None:
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []

    def __len__(self) -> int:
        return len(self._due)

    def __contains__(self, key: Key) -> bool:
        return key in self._due

    def put(self, key: Key, due: float) -> None:
        if due >= self._due.get(key, float("inf")):
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, key))
        if len(self._heap) > 2 * len(self._due) + _STALE_ALLOWED:
            self._heap = [(due, key) for key, due in self._due.items()]
            heapq.heapify(self._heap)

    def drop(self, key: Key) -> None:
        self._due.pop(key, None)

    def next_due(self) -> float | None:
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: float) -> Iterator[Key]:
        while (due := self.next_due()) is not None and due <= now:
            _, key = heapq.heappop(self._heap)
            del self._due[key]
            yield key


class WorkQueue:
    """One entry per key, one worker per key, fair between namespaces.

    `postpone` is asked when a deadline is due that a pass has set for itself: a number of seconds
    moves it, so that it costs no pass. What anybody else asked for is never postponed.
    """

    def __init__(
        self,
        *,
        retry_base: float = 0.5,
        retry_cap: float = 60.0,
        postpone: Callable[[Key], float | None] = lambda _key: None,
    ) -> None:
        self._retry_base = retry_base
        self._retry_cap = retry_cap
        self._postpone = postpone
        self._asked: set[Key] = set()
        self._loop = asyncio.get_running_loop()
        self._waiting = _Waiting()
        self._delayed = _Delayed()
        self._working: set[Key] = set()
        self._dirty: set[Key] = set()
        self._attempts: dict[Key, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._alarm: asyncio.TimerHandle | None = None
        self._closed = False

    def __len__(self) -> int:
        """How many keys wait for a worker."""
        return len(self._waiting)

    @property
    def delayed(self) -> int:
        return len(self._delayed)

    @property
    def working(self) -> int:
        return len(self._working)

    def oldest_age(self) -> float:
        """Seconds the longest waiting key waits for a worker; 0 where none does."""
        since = self._waiting.oldest()
        return 0.0 if since is None else self._loop.time() - since

    def in_backoff(self, key: Key) -> bool:
        """Whether a retry of the key is under way, which a periodic look must not overtake."""
        return key in self._attempts and key in self._delayed

    def is_expected(self, key: Key) -> bool:
        """Whether the key will be looked at without anybody asking again."""
        return key in self._delayed or key in self._waiting or key in self._dirty

    def add(self, key: Key) -> None:
        """Look at the key as soon as a worker is free."""
        if self._closed:
            return
        self._delayed.drop(key)
        if key in self._working:
            self._dirty.add(key)
        elif key not in self._waiting:
            self._waiting.push(key, self._loop.time())
            self._wake_one()

    def add_after(self, key: Key, delay: float) -> None:
        """Look at the key in `delay` seconds, or earlier where that is wanted already."""
        if delay <= 0:
            self.add(key)
        elif not self._closed and key not in self._waiting and key not in self._dirty:
            self._asked.add(key)
            self._put(key, delay)

    def rest(self, key: Key, delay: float) -> None:
        """The same, as the deadline that a pass has set for itself."""
        if delay <= 0:
            self.add(key)
        elif not self._closed and key not in self._waiting and key not in self._dirty:
            self._put(key, delay)

    def retry(self, key: Key, at_least: float = 0.0) -> float:
        """Look again after a delay that grows with each call until `forget`; returns it.

        `at_least` is what the server asked for; more than the longest delay it does not get.
        """
        attempt = self._attempts[key] = self._attempts.get(key, 0) + 1
        delay = backoff(attempt, base=self._retry_base, cap=self._retry_cap, seed=key)
        delay = max(delay, min(at_least, self._retry_cap))
        self.add_after(key, delay)
        return delay

    def forget(self, key: Key) -> None:
        """The key went well: its next retry starts from the shortest delay."""
        self._attempts.pop(key, None)

    async def get(self) -> Key:
        """The next key; it is this worker's alone until `done`."""
        while not self._closed and not self._waiting:
            await self._wait()
        if self._closed:
            raise QueueClosedError("the work queue is closed")
        key = self._waiting.pop()
        self._asked.discard(key)
        self._working.add(key)
        return key

    def done(self, key: Key) -> None:
        """The worker is through with the key; orders that came meanwhile are served next."""
        self._working.remove(key)
        if key in self._dirty:
            self._dirty.remove(key)
            self.add(key)

    def served(self, key: Key) -> None:
        """The worker looks anew: orders that came so far are answered by what it sees now."""
        self._dirty.discard(key)

    def close(self) -> None:
        """Wake all getters with QueueClosedError; from here on orders are ignored."""
        self._closed = True
        if self._alarm:
            self._alarm.cancel()
        while self._getters:
            self._wake_one()

    async def _wait(self) -> None:
        getter = self._loop.create_future()
        self._getters.append(getter)
        try:
            await getter
        except asyncio.CancelledError:
            if getter in self._getters:
                self._getters.remove(getter)
            elif self._waiting:
                self._wake_one()  # we were called but cannot come: pass the call on
            raise

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _put(self, key: Key, delay: float) -> None:
        self._delayed.put(key, self._loop.time() + delay)
        self._set_alarm()

    def _set_alarm(self) -> None:
        due = self._delayed.next_due()
        if self._alarm and (self._alarm.cancelled() or self._alarm.when() != due):
            self._alarm.cancel()
            self._alarm = None
        if self._alarm is None and due is not None:
            self._alarm = self._loop.call_at(due, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        now = self._loop.time()
        for key in list(self._delayed.take_due(now)):
            delay = None if key in self._asked else self._postpone(key)
            if delay:
                self._delayed.put(key, now + delay)
            else:
                self.add(key)
        self._set_alarm()
