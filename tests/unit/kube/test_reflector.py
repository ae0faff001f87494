"""The reflector keeps its store true through cuts, forgotten revisions and our own writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest

from supervisor_operator.errors import ForbiddenError, TransientError
from supervisor_operator.kube.cluster import PODS, Cluster, Listing, Object
from supervisor_operator.kube.reflector import Reflector
from supervisor_operator.kube.store import Store
from tests.support.fake_cluster import FakeCluster

pytestmark = pytest.mark.looptime

SELECTOR = "supervised"


def a_pod(name: str, owner: str = "boss", **labels: str) -> Object:
    labels = {"supervised": "yes", "owner": owner} | labels
    return {"metadata": {"name": name, "labels": labels}, "spec": {}}


@dataclass(frozen=True, slots=True)
class Kept:
    name: str
    owner: str
    revision: int


def keep(pod: Object) -> Kept:
    metadata = pod["metadata"]
    return Kept(metadata["name"], metadata["labels"]["owner"], int(metadata["resourceVersion"]))


def a_store() -> Store[Kept]:
    return Store(keep, owner_of=lambda kept: kept.owner)


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass(slots=True)
class World:
    """A cluster, a store that follows it, and everything that was told about it."""

    cluster: FakeCluster = field(default_factory=FakeCluster)
    store: Store[Kept] = field(default_factory=a_store)
    told: list[str] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)

    @asynccontextmanager
    async def reflected(self, namespace: str | None = None) -> AsyncIterator[Reflector[Kept]]:
        cluster: Cluster = self.cluster
        reflector = Reflector(
            cluster,
            PODS,
            self.store,
            namespace=namespace,
            selector=SELECTOR,
            on_change=self.note,
            on_gap=self.gaps.append,
            clock=now,
        )
        running = asyncio.create_task(reflector.run())
        await reflector.wait_synced()
        await self.settle()
        yield reflector
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    def note(self, kind: str, item: Object) -> None:
        self.told.append(f"{kind} {item['metadata']['name']} of {item['metadata']['uid']}")

    def names(self) -> set[str]:
        return {kept.name for kept in self.store.values()}

    async def settle(self) -> None:
        await asyncio.sleep(1)


@pytest.fixture
def world() -> World:
    return World()


async def test_what_is_there_and_what_happens_is_told_and_kept(world: World) -> None:
    world.cluster.add(PODS, a_pod("a"))
    async with world.reflected() as reflector:
        assert reflector.synced
        world.cluster.add(PODS, a_pod("b", owner="other"))
        world.cluster.change(PODS, "default", "a", {"spec": {"nodeName": "n"}})
        world.cluster.remove(PODS, "default", "b")
        await world.settle()
    assert world.told == [
        "ADDED a of uid-1",
        "ADDED b of uid-2",
        "MODIFIED a of uid-1",
        "DELETED b of uid-2",
    ]
    assert world.store.get(("default", "a")) == Kept("a", "boss", 103)
    assert world.store.of("boss") == (Kept("a", "boss", 103),)
    assert world.store.of("other") == ()
    assert len(world.store) == 1


async def test_only_selected_objects_are_seen_and_a_lost_label_is_a_delete(world: World) -> None:
    stranger = a_pod("stranger")
    del stranger["metadata"]["labels"]["supervised"]
    world.cluster.add(PODS, stranger)
    world.cluster.add(PODS, a_pod("a"))
    async with world.reflected():
        assert world.names() == {"a"}
        gone = {"metadata": {"labels": {"supervised": None}}}
        world.cluster.change(PODS, "default", "a", gone)
        await world.settle()
        assert world.names() == set()
    assert world.told[-1] == "DELETED a of uid-2"


async def test_a_change_of_owner_moves_the_object_in_the_index(world: World) -> None:
    world.cluster.add(PODS, a_pod("a"))
    async with world.reflected():
        world.cluster.change(PODS, "default", "a", {"metadata": {"labels": {"owner": "new"}}})
        await world.settle()
        assert [kept.name for kept in world.store.of("new")] == ["a"]
        assert world.store.of("boss") == ()


async def test_a_cut_watch_goes_on_where_it_was(world: World) -> None:
    async with world.reflected():
        world.cluster.add(PODS, a_pod("a"))
        await world.settle()
        world.cluster.cut()
        world.cluster.add(PODS, a_pod("b"))
        await world.settle()
        assert world.names() == {"a", "b"}
    verbs = [(verb, name) for verb, _, name in world.cluster.calls]
    assert verbs == [("list", ""), ("watch", "100"), ("watch", "101")]


async def test_a_watch_whose_time_is_up_goes_on_at_once_from_the_last_bookmark(
    world: World,
) -> None:
    async with world.reflected():
        world.cluster.revision = 500
        world.cluster.bookmark()
        await world.settle()
        world.cluster.end_watches()
        await asyncio.sleep(0.01)
        assert world.cluster.watching == 1
    assert world.cluster.calls[-1] == ("watch", "pods", "500")
    assert world.store.revision("default") == 500


async def test_a_delete_that_nobody_saw_is_noticed_by_the_next_list(world: World) -> None:
    for name in ("a", "b", "c"):
        world.cluster.add(PODS, a_pod(name))
    async with world.reflected():
        world.told.clear()
        world.cluster.cut()
        world.cluster.remove(PODS, "default", "a")
        world.cluster.remove(PODS, "default", "b")
        world.cluster.add(PODS, a_pod("b"))
        world.cluster.forget()
        await asyncio.sleep(5)
        assert world.names() == {"b", "c"}
    assert sorted(world.told) == ["ADDED b of uid-4", "DELETED a of uid-1", "DELETED b of uid-2"]
    assert world.told.index("DELETED b of uid-2") < world.told.index("ADDED b of uid-4")


async def test_a_list_tells_changes_and_keeps_quiet_about_the_rest(world: World) -> None:
    world.cluster.add(PODS, a_pod("same"))
    world.cluster.add(PODS, a_pod("changed"))
    async with world.reflected():
        world.told.clear()
        world.cluster.cut()
        world.cluster.change(PODS, "default", "changed", {"spec": {"nodeName": "n"}})
        world.cluster.forget()
        await asyncio.sleep(5)
    assert world.told == ["MODIFIED changed of uid-2"]


async def test_a_deleted_object_is_told_with_its_labels(world: World) -> None:
    pod = a_pod("a")
    world.cluster.add(PODS, pod)
    world.store.replace(None, await world.cluster.list(PODS))
    [(_, told)] = world.store.replace(None, Listing([], "200"))
    metadata = told["metadata"]
    assert metadata["labels"]["owner"] == "boss"
    assert metadata["namespace"] == "default"


async def test_our_own_write_is_known_at_once_and_its_echo_is_told(world: World) -> None:
    async with world.reflected():
        made = await world.cluster.create(PODS, "default", a_pod("a"))
        world.store.put(made)
        assert world.names() == {"a"}
        assert world.store.revision("default") < int(made["metadata"]["resourceVersion"])
        await world.settle()
        assert world.told == ["ADDED a of uid-1"]
        assert world.store.revision("default") == int(made["metadata"]["resourceVersion"])


async def test_an_answer_that_comes_after_the_delete_makes_no_ghost(world: World) -> None:
    async with world.reflected():
        made = await world.cluster.create(PODS, "default", a_pod("a"))
        world.cluster.remove(PODS, "default", "a")
        await world.settle()
        world.store.put(made)
        assert world.names() == set()


async def test_an_older_answer_does_not_undo_a_newer_one(world: World) -> None:
    async with world.reflected():
        made = await world.cluster.create(PODS, "default", a_pod("a"))
        newer = world.cluster.change(PODS, "default", "a", {"spec": {"nodeName": "n"}})
        world.store.put(newer)
        world.store.put(made)
        assert world.store.of("boss")[0].revision == int(newer["metadata"]["resourceVersion"])
        await world.settle()
    assert world.told == ["MODIFIED a of uid-1"], "the echo of the older write is no news"


async def test_the_death_of_the_older_incarnation_leaves_the_newer_alone(world: World) -> None:
    older = world.cluster.add(PODS, a_pod("a"))
    world.store.replace(None, await world.cluster.list(PODS))
    world.cluster.remove(PODS, "default", "a")
    world.store.put(await world.cluster.create(PODS, "default", a_pod("a")))
    assert not world.store.apply(None, "DELETED", older)
    assert not world.store.apply(None, "MODIFIED", older)
    assert world.store.of("boss")[0].revision == world.cluster.revision


async def test_our_own_write_outlives_a_list_that_was_asked_before_it(world: World) -> None:
    earlier = await world.cluster.list(PODS)
    world.store.put(await world.cluster.create(PODS, "default", a_pod("a")))
    assert world.store.replace(None, earlier) == []
    assert world.names() == {"a"}
    confirmed = world.store.replace(None, await world.cluster.list(PODS))
    assert [kind for kind, _ in confirmed] == ["MODIFIED"], "somebody may wait for it"


async def test_a_cluster_restored_from_a_backup_is_believed(world: World) -> None:
    world.cluster.add(PODS, a_pod("kept"))
    backup = await world.cluster.list(PODS)
    world.cluster.change(PODS, "default", "kept", {"spec": {"nodeName": "n"}})
    world.cluster.add(PODS, a_pod("lost"))
    world.store.replace(None, await world.cluster.list(PODS))
    changes = world.store.replace(None, backup)
    assert [(kind, item["metadata"]["name"]) for kind, item in changes] == [
        ("DELETED", "lost"),
        ("MODIFIED", "kept"),
    ]
    assert world.store.revision("default") == int(backup.revision)


async def test_namespaces_share_a_store_without_speaking_for_each_other(world: World) -> None:
    world.cluster.add(PODS, a_pod("a"), "one")
    world.cluster.add(PODS, a_pod("a"), "two")
    async with world.reflected("one"):
        assert world.store.revision("one") == 102
        assert world.store.revision("two") == 0
        async with world.reflected("two"):
            assert {key for key in ("one", "two") if world.store.get((key, "a"))} == {"one", "two"}
            world.cluster.remove(PODS, "one", "a")
            await world.settle()
            assert world.store.revision("one") == 103
            assert world.store.revision("two") == 102
            world.cluster.forget()
            await asyncio.sleep(5)
            assert world.store.get(("two", "a"))
            assert world.store.get(("one", "a")) is None


async def test_failures_wait_longer_and_longer_and_obey_the_server(world: World) -> None:
    world.cluster.fail("list", PODS, TransientError("away"))
    world.cluster.fail("list", PODS, TransientError("away"))
    world.cluster.fail("list", PODS, ForbiddenError("no right yet", status=403))
    world.cluster.fail("list", PODS, TransientError("busy", status=429, retry_after=20.0))
    start = now()
    async with world.reflected():
        waited = now() - start
    assert [verb for verb, _, _ in world.cluster.calls] == ["list"] * 5 + ["watch"]
    assert 0.25 + 0.5 + 1.0 + 20.0 <= waited <= 0.5 + 1.0 + 2.0 + 20.0 + 1.0


async def test_watches_that_end_at_once_are_not_asked_for_in_a_hurry(world: World) -> None:
    async with world.reflected():
        for _ in range(50):
            world.cluster.end_watches()
            await asyncio.sleep(0.1)
    assert len(world.cluster.calls) < 15


async def test_a_long_silence_after_a_failure_is_a_gap_and_a_quiet_watch_is_none(
    world: World,
) -> None:
    async with world.reflected() as reflector:
        await asyncio.sleep(60)
        world.cluster.bookmark()
        await world.settle()
        assert world.gaps == []
        assert reflector.last_contact == now() - 1
        world.cluster.fail("watch", PODS, TransientError("away", retry_after=30.0))
        world.cluster.cut()
        await asyncio.sleep(40)
        assert len(world.gaps) == 1
        assert reflector.gap == world.gaps[0] == pytest.approx(31.5, abs=1)
        await asyncio.sleep(60)
        world.cluster.bookmark()
        await world.settle()
        assert len(world.gaps) == 1


async def test_short_gaps_are_not_told(world: World) -> None:
    async with world.reflected():
        world.cluster.cut()
        await asyncio.sleep(5)
        assert world.cluster.watching == 1
    assert world.gaps == []
