"""What a worker makes of each way a pass can go, and what the resync looks at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from supervisor_operator.backoff import backoff
from supervisor_operator.errors import (
    ConflictError,
    LeadershipLostError,
    NotFoundError,
    TransientError,
)
from supervisor_operator.queue import Key, WorkQueue
from supervisor_operator.reconcile import NotYetError, Outcome
from supervisor_operator.snapshot import Event, SnapshotBoard
from supervisor_operator.workers import NOT_YET_SECONDS, Resync, work

pytestmark = pytest.mark.looptime

A, B = ("one", "a"), ("one", "b")
BASE, CAP = 1.0, 60.0


def now() -> float:
    return asyncio.get_running_loop().time()


class Scripted:
    """Passes that end as told, one after the other, and then well."""

    def __init__(self, script: list[Outcome | Exception]) -> None:
        self.script = script
        self.seconds = 0.0
        self.passes: list[tuple[Key, float]] = []

    async def reconcile(self, key: Key) -> Outcome:
        self.passes.append((key, now()))
        await asyncio.sleep(self.seconds)
        end = self.script.pop(0) if self.script else Outcome()
        if isinstance(end, Exception):
            raise end
        return end


@dataclass(slots=True)
class Workshop:
    script: list[Outcome | Exception]
    queue: WorkQueue = field(default_factory=lambda: WorkQueue(retry_base=BASE, retry_cap=CAP))
    board: SnapshotBoard = field(
        default_factory=lambda: SnapshotBoard(lambda: datetime(2026, 1, 1, tzinfo=UTC))
    )
    reconciler: Scripted = field(init=False)

    def __post_init__(self) -> None:
        self.reconciler = Scripted(self.script)

    def start(self) -> asyncio.Task[None]:
        return asyncio.create_task(work(self.queue, self.reconciler.reconcile, self.board))

    @asynccontextmanager
    async def working(self) -> AsyncIterator[list[str]]:
        """One worker; gives the errors that were told. It must outlive the test."""
        reader, worker = self.board.subscribe(), self.start()
        errors: list[str] = []
        yield errors
        self.queue.close()
        await worker
        errors += [one.error for one in reader._waiting if isinstance(one, Event)]

    @property
    def times(self) -> list[float]:
        return [time for _, time in self.reconciler.passes]


def about(times: list[float]) -> Any:
    return pytest.approx(times, abs=0.001)


def delays(attempts: int) -> list[float]:
    return [backoff(number, base=BASE, cap=CAP, seed=A) for number in range(1, attempts + 1)]


async def test_a_pass_is_made_and_the_next_one_when_it_asked_for_it() -> None:
    shop = Workshop([Outcome(check_in=30), Outcome()])
    async with shop.working() as errors:
        shop.queue.add(A)
        await asyncio.sleep(1000)
        assert shop.times == [0, 30]
    assert errors == []


async def test_a_view_that_is_not_whole_yet_is_looked_at_again_soon_and_is_no_failure() -> None:
    shop = Workshop([NotYetError("not whole")] * 3)
    async with shop.working() as errors:
        shop.queue.add(A)
        await asyncio.sleep(10)
        assert shop.times == about([NOT_YET_SECONDS * number for number in range(4)])
    assert errors == []


@pytest.mark.parametrize(
    "error",
    [ConflictError("modified", status=409), NotFoundError("gone", status=404)],
    ids=["409", "404"],
)
async def test_somebody_elses_write_is_looked_at_again_and_is_no_failure(error: Exception) -> None:
    shop = Workshop([error, error])
    async with shop.working() as errors:
        shop.queue.add(A)
        await asyncio.sleep(100)
        first, second = delays(2)
        assert shop.times == about([0, first, first + second])
    assert errors == []


async def test_a_server_that_is_away_is_asked_with_growing_delay_and_told() -> None:
    shop = Workshop([TransientError("503")] * 3)
    async with shop.working() as errors:
        shop.queue.add(A)
        await asyncio.sleep(100)
        first, second, third = delays(3)
        wanted = [0, first, first + second, first + second + third]
        assert shop.times == about(wanted)
    assert errors == ["503"] * 3


async def test_a_pass_that_crashes_is_told_and_tried_again_while_others_are_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shop = Workshop([RuntimeError("a bug")])
    async with shop.working() as errors:
        shop.queue.add(A)
        shop.queue.add(B)
        await asyncio.sleep(100)
        assert [key for key, _ in shop.reconciler.passes] == [A, B, A]
    assert errors == ["a bug"]
    assert "RuntimeError: a bug" in caplog.text


async def test_a_refusal_backs_off_and_success_starts_from_the_shortest_delay_again() -> None:
    shop = Workshop([Outcome(backs_off=True), Outcome(backs_off=True), Outcome()])
    async with shop.working():
        shop.queue.add(A)
        await asyncio.sleep(100)
        first, second = delays(2)
        assert shop.times == about([0, first, first + second])
        shop.reconciler.script.append(Outcome(backs_off=True))
        shop.queue.add(A)
        await asyncio.sleep(100)
        assert shop.times[3:] == about([100, 100 + first])


async def test_not_yet_does_not_shorten_the_delay_that_has_grown() -> None:
    shop = Workshop([TransientError("503"), NotYetError("not whole"), TransientError("503")])
    async with shop.working():
        shop.queue.add(A)
        await asyncio.sleep(100)
        first, second = delays(2)
        again = first + NOT_YET_SECONDS
        assert shop.times == about([0, first, again, again + second])


async def test_lost_leadership_ends_the_worker_and_frees_its_key() -> None:
    shop = Workshop([LeadershipLostError("another leads")])
    worker = shop.start()
    shop.queue.add(A)
    with pytest.raises(LeadershipLostError):
        await worker
    assert shop.queue.working == 0
    shop.queue.close()


async def test_a_worker_that_is_ended_in_a_pass_frees_its_key() -> None:
    shop = Workshop([])
    shop.reconciler.seconds = 3600
    worker = shop.start()
    shop.queue.add(A)
    await asyncio.sleep(1)
    assert shop.queue.working == 1
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker
    assert shop.queue.working == 0
    shop.queue.close()


@asynccontextmanager
async def resyncing(queue: WorkQueue, *keys: Key) -> AsyncIterator[Resync]:
    resync = Resync(queue, lambda: keys, 30)
    running = asyncio.create_task(resync.run())
    yield resync
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    queue.close()


async def test_everything_is_looked_at_now_and_then() -> None:
    shop = Workshop([])
    async with shop.working(), resyncing(shop.queue, A, B):
        await asyncio.sleep(65)
        assert shop.reconciler.passes == [(A, 30), (B, 30), (A, 60), (B, 60)]


async def test_a_server_that_says_when_to_come_again_is_obeyed() -> None:
    busy = TransientError("too many requests", status=429, retry_after=7.0)
    shop = Workshop([busy, Outcome()])
    async with shop.working():
        shop.queue.add(A)
        await asyncio.sleep(100)
        assert shop.times == about([0, 7])


async def test_the_resync_does_not_overtake_a_back_off() -> None:
    queue = WorkQueue(retry_base=1000, retry_cap=1000)
    async with resyncing(queue, A, B):
        queue.retry(A)
        await asyncio.sleep(31)
        assert await queue.get() == B
        assert len(queue) == 0


async def test_a_resync_that_does_not_come_is_noticed() -> None:
    queue = WorkQueue()
    async with resyncing(queue, A) as resync:
        await asyncio.sleep(905)
        assert resync.stalled() is None
    await asyncio.sleep(85)
    assert resync.stalled() is None
    await asyncio.sleep(1)
    assert resync.stalled() == "the last resync was 91 s ago"


async def test_a_large_fleet_is_looked_at_in_slices() -> None:
    queue = WorkQueue()
    keys = [("default", f"agent-{number}") for number in range(200)]
    async with resyncing(queue, *keys):
        await asyncio.sleep(7.6)
        assert len(queue) == 50
        await asyncio.sleep(22.5)
        assert len(queue) == 200


async def test_who_is_still_is_passed_over() -> None:
    queue = WorkQueue()
    resync = Resync(queue, lambda: [A, B], 30, lambda key: key == A)
    running = asyncio.create_task(resync.run())
    await asyncio.sleep(31)
    assert await queue.get() == B
    assert len(queue) == 0
    resync.look_at_all()
    assert await queue.get() == A, "asked for everybody, nobody is passed over"
    running.cancel()
