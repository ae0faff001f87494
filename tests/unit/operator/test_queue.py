from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor_operator.backoff import backoff
from supervisor_operator.errors import QueueClosedError
from supervisor_operator.queue import Key, WorkQueue

pytestmark = pytest.mark.looptime

A, B, C = ("one", "a"), ("one", "b"), ("one", "c")


@pytest.fixture
async def queue() -> AsyncIterator[WorkQueue]:
    queue = WorkQueue(retry_base=1.0, retry_cap=8.0)
    yield queue
    queue.close()


def now() -> float:
    return asyncio.get_running_loop().time()


async def work(queue: WorkQueue) -> Key:
    key = await queue.get()
    queue.done(key)
    return key


async def test_many_orders_for_one_key_are_one(queue: WorkQueue) -> None:
    for _ in range(5):
        queue.add(A)
    assert len(queue) == 1
    assert await work(queue) == A
    assert len(queue) == 0


async def test_key_being_worked_on_is_kept_from_others_and_served_afterwards(
    queue: WorkQueue,
) -> None:
    queue.add(A)
    key = await queue.get()
    queue.add(A)
    other = asyncio.create_task(queue.get())
    await asyncio.sleep(10)
    assert not other.done()
    assert queue.working == 1
    queue.done(key)
    assert await other == A


async def test_orders_that_came_before_a_new_look_are_answered_by_it(queue: WorkQueue) -> None:
    queue.add(A)
    key = await queue.get()
    queue.add(A)
    queue.served(key)
    queue.done(key)
    assert len(queue) == 0
    queue.add(A)
    await queue.get()
    queue.served(key)
    queue.add(A)
    queue.done(key)
    assert await work(queue) == A, "this one came after the look"


async def test_key_done_without_new_orders_is_not_served_again(queue: WorkQueue) -> None:
    queue.add(A)
    await work(queue)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 3600)


async def test_a_namespace_with_many_keys_does_not_keep_others_waiting(queue: WorkQueue) -> None:
    for number in range(1000):
        queue.add(("big", str(number)))
    queue.add(("small", "a"))
    queue.add(("tiny", "a"))
    served = [(await work(queue))[0] for _ in range(4)]
    assert served == ["big", "small", "tiny", "big"]


async def test_inside_a_namespace_first_come_first_served(queue: WorkQueue) -> None:
    for key in (B, A, C):
        queue.add(key)
    assert [await work(queue) for _ in range(3)] == [B, A, C]


async def test_delayed_key_comes_at_its_time(queue: WorkQueue) -> None:
    start = now()
    queue.add_after(A, 30)
    queue.add_after(B, 10)
    assert await work(queue) == B
    assert now() - start == pytest.approx(10, abs=0.1)
    assert await work(queue) == A
    assert now() - start == pytest.approx(30, abs=0.1)


@pytest.mark.parametrize("delays", [(30, 10), (10, 30), (10, 30, 20)])
async def test_of_several_delays_the_earliest_wins_and_is_the_only_one(
    queue: WorkQueue, delays: tuple[int, ...]
) -> None:
    start = now()
    for delay in delays:
        queue.add_after(A, delay)
    assert queue.delayed == 1
    await work(queue)
    assert now() - start == pytest.approx(10, abs=0.1)
    await asyncio.sleep(60)
    assert (len(queue), queue.delayed) == (0, 0)


async def test_an_order_for_now_swallows_the_delayed_one(queue: WorkQueue) -> None:
    queue.add_after(A, 10)
    queue.add(A)
    await work(queue)
    await asyncio.sleep(60)
    assert len(queue) == 0


async def test_delay_that_ends_during_the_work_is_served_afterwards(queue: WorkQueue) -> None:
    queue.add(A)
    key = await queue.get()
    queue.add_after(A, 5)
    await asyncio.sleep(20)
    assert len(queue) == 0
    queue.done(key)
    assert await work(queue) == A


async def test_ten_thousand_delayed_keys_make_one_timer_and_no_task(queue: WorkQueue) -> None:
    tasks = len(asyncio.all_tasks())
    for number in range(10_000):
        queue.add_after(("one", str(number)), 100 + number / 100)
    assert len(asyncio.all_tasks()) == tasks
    await asyncio.sleep(300)
    assert len(queue) == 10_000


async def test_rearming_one_key_for_ever_keeps_memory_bounded(queue: WorkQueue) -> None:
    for number in range(10_000):
        queue.add_after(A, 20_000 - number)
    assert len(queue._delayed._heap) < 100


async def test_retries_wait_longer_and_longer_up_to_the_cap(queue: WorkQueue) -> None:
    delays = [queue.retry(A) for _ in range(8)]
    assert all(limit / 2 <= delay <= limit for delay, limit in zip(delays, (1, 2, 4), strict=False))
    assert all(4 <= delay <= 8 for delay in delays[3:])
    assert await work(queue) == A
    queue.forget(A)
    assert queue.retry(A) == delays[0]


async def test_retry_is_served_after_its_delay_and_seen_as_backoff(queue: WorkQueue) -> None:
    start = now()
    delay = queue.retry(A)
    assert queue.in_backoff(A)
    queue.add_after(B, 0.1)
    assert not queue.in_backoff(B)
    assert [await work(queue), await work(queue)] == [B, A]
    assert now() - start == pytest.approx(delay, abs=0.1)
    assert not queue.in_backoff(A)


async def test_keys_that_failed_together_do_not_come_back_together(queue: WorkQueue) -> None:
    delays = {queue.retry(("one", str(number))) for number in range(100)}
    assert len(delays) == 100
    assert max(delays) - min(delays) > 0.4


def test_backoff_of_a_thousand_attempts_is_the_cap_at_most() -> None:
    assert 30 <= backoff(1000, base=1, cap=60, seed=A) <= 60


async def test_oldest_age_is_that_of_the_longest_waiting_key(queue: WorkQueue) -> None:
    assert queue.oldest_age() == 0
    queue.add(A)
    await asyncio.sleep(7)
    queue.add(("two", "a"))
    await asyncio.sleep(3)
    assert queue.oldest_age() == pytest.approx(10, abs=0.1)
    await work(queue)
    assert queue.oldest_age() == pytest.approx(3, abs=0.1)


async def test_close_wakes_all_getters_and_later_orders_are_ignored(queue: WorkQueue) -> None:
    getters = [asyncio.create_task(queue.get()) for _ in range(4)]
    await asyncio.sleep(1)
    queue.add_after(A, 5)
    queue.close()
    answers = await asyncio.gather(*getters, return_exceptions=True)
    assert [type(answer) for answer in answers] == [QueueClosedError] * 4
    queue.add(B)
    await asyncio.sleep(10)
    assert len(queue) == 0
    with pytest.raises(QueueClosedError):
        await queue.get()


async def test_worker_finishes_its_key_after_close(queue: WorkQueue) -> None:
    queue.add(A)
    key = await queue.get()
    queue.add(A)
    queue.close()
    queue.done(key)
    assert queue.working == 0


async def test_a_getter_cancelled_as_it_is_called_passes_the_call_on(queue: WorkQueue) -> None:
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    queue.add(A)
    first.cancel()
    assert await asyncio.wait_for(second, 5) == A
    assert first.cancelled()


async def test_a_getter_cancelled_while_waiting_leaves_no_trace(queue: WorkQueue) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 5)
    assert not queue._getters


KEYS = st.tuples(st.sampled_from(["x", "y"]), st.sampled_from(["a", "b", "c"]))
STEPS = st.one_of(
    st.tuples(st.just("add"), KEYS),
    st.tuples(st.just("later"), KEYS, st.floats(0.01, 20)),
    st.tuples(st.just("retry"), KEYS),
    st.tuples(st.just("pass"), st.floats(0.01, 10)),
)


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEPS, max_size=40), work_times=st.lists(st.floats(0.01, 5), min_size=1))
def test_every_order_is_followed_by_work_that_starts_later_and_never_twice_at_once(
    steps: list[tuple[object, ...]], work_times: list[float]
) -> None:
    import looptime

    loop = looptime.new_event_loop(end=100_000, idle_step=None)
    try:
        loop.run_until_complete(_story(steps, work_times))
    finally:
        loop.close()


async def _story(steps: list[tuple[object, ...]], work_times: list[float]) -> None:
    queue = WorkQueue()
    busy: set[Key] = set()
    ordered: dict[Key, float] = {}
    started: dict[Key, float] = {}

    async def worker(number: int) -> None:
        while True:
            key = await queue.get()
            assert key not in busy
            busy.add(key)
            started[key] = now()
            await asyncio.sleep(work_times[number % len(work_times)])
            busy.remove(key)
            queue.done(key)

    workers = [asyncio.create_task(worker(number)) for number in range(3)]
    for step in steps:
        match step:
            case ("add", tuple() as key):
                ordered[key] = now()
                queue.add(key)
            case ("later", tuple() as key, float() as delay):
                ordered[key] = now()
                queue.add_after(key, delay)
            case ("retry", tuple() as key):
                ordered[key] = now()
                queue.retry(key)
            case (_, float() as delay):
                await asyncio.sleep(delay)
            case _:
                raise AssertionError(step)
    await asyncio.sleep(1000)
    assert (len(queue), queue.delayed, queue.working) == (0, 0, 0)
    assert all(started[key] >= ordered[key] for key in ordered)
    queue.close()
    answers = await asyncio.gather(*workers, return_exceptions=True)
    assert all(isinstance(answer, QueueClosedError) for answer in answers), answers


@pytest.fixture
async def patient() -> AsyncIterator[WorkQueue]:
    """Moves each deadline of A by ten seconds, until a minute is over."""
    queue = WorkQueue(postpone=lambda key: 10.0 if key == A and now() < 60 else None)
    yield queue
    queue.close()


async def test_a_deadline_that_moved_costs_no_pass(patient: WorkQueue) -> None:
    patient.rest(A, 5)
    patient.rest(B, 5)
    assert (await work(patient), now()) == (B, 5)
    assert (await work(patient), now()) == (A, 65)


async def test_what_somebody_else_asked_for_is_not_postponed(patient: WorkQueue) -> None:
    patient.rest(A, 5)
    patient.add_after(A, 7)
    assert (await work(patient), now()) == (A, 5), "it would swallow the later order otherwise"
    patient.rest(A, 5)
    assert (await work(patient), now()) == (A, 60)
