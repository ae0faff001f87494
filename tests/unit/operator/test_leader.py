"""Who leads, who waits, and what happens when the leader dies, hangs, leaves or is cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

import pytest

from supervisor_operator.errors import LeadershipLostError, TransientError
from supervisor_operator.kube.cluster import LEASES, Object
from supervisor_operator.leader import Election, Leader
from tests.support.fake_cluster import FakeCluster

pytestmark = pytest.mark.looptime

START = datetime(2026, 1, 1, tzinfo=UTC)


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


def a_candidate(
    cluster: FakeCluster, identity: str, *, skew: timedelta = timedelta(0), lease_seconds: int = 15
) -> Leader:
    election = Election(
        namespace="ops", name="operator", identity=identity, lease_seconds=lease_seconds
    )
    return Leader(
        cluster, election, clock=now, wall=lambda: START + skew + timedelta(seconds=now())
    )


@asynccontextmanager
async def holding(leader: Leader) -> AsyncIterator[asyncio.Task[None]]:
    """Leads until the block ends, and then is gone without a word, as after SIGKILL."""
    await leader.acquire()
    task = asyncio.create_task(leader.hold())
    yield task
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def the_lease(cluster: FakeCluster) -> Object:
    return cluster.objects["leases", "ops", "operator"]


def holder(cluster: FakeCluster) -> str:
    found: str = the_lease(cluster)["spec"]["holderIdentity"]
    return found


async def test_the_first_one_leads_at_once_and_says_so_in_the_lease(cluster: FakeCluster) -> None:
    leader = a_candidate(cluster, "a")
    with pytest.raises(LeadershipLostError, match="a does not hold lease ops/operator"):
        leader.check()
    await leader.acquire()
    leader.check()
    assert leader.remaining() == 10.0
    assert the_lease(cluster)["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }


async def test_each_says_its_part(cluster: FakeCluster) -> None:
    first, second = a_candidate(cluster, "a"), a_candidate(cluster, "b")
    assert first.describe() == "standby, waits for ops/operator of nobody yet"
    async with holding(first):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(second.acquire(), 1)
        assert first.describe() == "leader, holds ops/operator"
        assert second.describe() == "standby, waits for ops/operator of a"


async def test_a_living_leader_stays_and_the_other_waits(cluster: FakeCluster) -> None:
    first, second = a_candidate(cluster, "a"), a_candidate(cluster, "b")
    async with holding(first):
        waiting = asyncio.create_task(second.acquire())
        for _ in range(600):
            await asyncio.sleep(1)
            first.check()
            assert second.remaining() == 0.0
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
    assert the_lease(cluster)["spec"]["leaseTransitions"] == 0


async def test_a_killed_leader_is_followed_after_its_lease_and_never_before(
    cluster: FakeCluster,
) -> None:
    first, second = a_candidate(cluster, "a"), a_candidate(cluster, "b")
    async with holding(first):
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(60)
    renewed = first.remaining() + now() - 10.0
    await waiting
    assert 15.0 <= now() - renewed <= 15.0 + 2 * 2.2
    assert first.remaining() == 0.0
    assert holder(cluster) == "b"
    assert the_lease(cluster)["spec"]["leaseTransitions"] == 1


async def test_a_released_lease_is_taken_at_the_next_look(cluster: FakeCluster) -> None:
    first, second = a_candidate(cluster, "a"), a_candidate(cluster, "b")
    async with holding(first):
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(60)
    await first.release()
    assert first.remaining() == 0.0
    assert the_lease(cluster)["spec"]["leaseDurationSeconds"] == 1
    released = now()
    await waiting
    assert now() - released <= 2.2
    assert holder(cluster) == "b"


@pytest.mark.parametrize("skew", [timedelta(days=-400), timedelta(days=400)])
async def test_wrong_clocks_matter_to_nobody(cluster: FakeCluster, skew: timedelta) -> None:
    first, second = a_candidate(cluster, "a"), a_candidate(cluster, "b", skew=skew)
    async with holding(first):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(second.acquire(), 300)
        first.check()
    start = now()
    await second.acquire()
    assert 10.0 < now() - start <= 15.0 + 2 * 2.2


async def test_a_newcomer_waits_a_whole_lease_even_for_one_long_dead(cluster: FakeCluster) -> None:
    await a_candidate(cluster, "a", skew=timedelta(days=-400)).acquire()
    start = now()
    await a_candidate(cluster, "b").acquire()
    assert 15.0 <= now() - start <= 15.0 + 2 * 2.2


async def test_the_lease_of_a_slower_leader_is_honoured(cluster: FakeCluster) -> None:
    await a_candidate(cluster, "a", lease_seconds=60).acquire()
    start = now()
    await a_candidate(cluster, "b", lease_seconds=15).acquire()
    assert now() - start >= 60.0


async def test_a_leader_cut_off_stops_before_anyone_can_follow(cluster: FakeCluster) -> None:
    leader = a_candidate(cluster, "a")
    async with holding(leader) as task:
        await asyncio.sleep(60)
        for _ in range(20):
            cluster.fail("replace", LEASES, TransientError("away"))
        cut = now()
        await task
        assert 8.0 <= now() - cut <= 10.0
        with pytest.raises(LeadershipLostError):
            leader.check()


async def test_a_hung_request_leaves_time_for_another(cluster: FakeCluster) -> None:
    leader = a_candidate(cluster, "a")
    async with holding(leader) as task:
        await asyncio.sleep(3)
        cluster.latency = 3600.0
        await asyncio.sleep(4)
        cluster.latency = 0.0
        await asyncio.sleep(60)
        assert not task.done()
        cluster.latency = 3600.0
        hung = now()
        await task
        assert now() - hung <= 10.0


async def test_a_renewal_whose_answer_was_lost_is_no_conflict(cluster: FakeCluster) -> None:
    leader = a_candidate(cluster, "a")
    async with holding(leader) as task:
        cluster.fail("replace", LEASES, TransientError("cut"), after=True)
        await asyncio.sleep(30)
        leader.check()
        assert not task.done()


async def test_a_stranger_touching_the_lease_does_not_end_the_lead(cluster: FakeCluster) -> None:
    leader = a_candidate(cluster, "a")
    async with holding(leader) as task:
        cluster.change(LEASES, "ops", "operator", {"metadata": {"labels": {"seen": "yes"}}})
        await asyncio.sleep(30)
        leader.check()
        cluster.remove(LEASES, "ops", "operator")
        await asyncio.sleep(30)
        leader.check()
        assert not task.done()
    assert holder(cluster) == "a"


async def test_a_lease_given_to_another_ends_the_lead_at_the_next_renewal(
    cluster: FakeCluster,
) -> None:
    leader = a_candidate(cluster, "a")
    async with holding(leader) as task:
        cluster.change(LEASES, "ops", "operator", {"spec": {"holderIdentity": "b"}})
        given = now()
        await task
        assert now() - given <= 2.0
    assert leader.remaining() == 0.0
    await leader.release()
    assert holder(cluster) == "b"


async def test_of_two_who_take_at_the_same_moment_one_wins(cluster: FakeCluster) -> None:
    cluster.latency = 0.1
    candidates = [a_candidate(cluster, name) for name in ("a", "b")]
    tasks = [asyncio.create_task(candidate.acquire()) for candidate in candidates]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    assert [candidate.remaining() > 0 for candidate in candidates].count(True) == 1
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_release_that_fails_costs_only_time(cluster: FakeCluster) -> None:
    leader = a_candidate(cluster, "a")
    await leader.release()
    assert cluster.calls == []
    await leader.acquire()
    cluster.fail("replace", LEASES, TransientError("away"))
    await leader.release()
    assert leader.remaining() == 0.0
    await a_candidate(cluster, "b").acquire()
    assert holder(cluster) == "b"


async def test_a_release_leaves_the_lease_of_a_follower_alone(cluster: FakeCluster) -> None:
    leader = a_candidate(cluster, "a")
    await leader.acquire()
    await asyncio.sleep(20)
    cluster.change(LEASES, "ops", "operator", {"spec": {"holderIdentity": "b"}})
    await leader.release()
    assert holder(cluster) == "b"
