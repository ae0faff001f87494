"""The custom objects as kopf brings them: no ghosts, no step back, no trust without a look."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from supervisor_operator.errors import TransientError
from supervisor_operator.kube.cluster import SUPERVISORS, Object
from supervisor_operator.kube.customs import AWAITED_SECONDS, Customs
from supervisor_operator.queue import Key
from tests.support.builders import a_supervisor
from tests.support.fake_cluster import FakeCluster

pytestmark = pytest.mark.looptime

A, B = ("default", "a"), ("default", "b")


@dataclass(slots=True)
class World:
    """A cluster, what kopf told of it, and which keys were ordered."""

    cluster: FakeCluster = field(default_factory=FakeCluster)
    ordered: list[Key] = field(default_factory=list)
    customs: Customs = field(init=False)

    def __post_init__(self) -> None:
        self.customs = Customs(SUPERVISORS, self.ordered.append)

    def create(self, name: str, namespace: str = "default", **spec: Any) -> Object:
        return self.cluster.add(SUPERVISORS, a_supervisor(name, **spec), namespace)

    def change(self, name: str, **spec: Any) -> Object:
        return self.cluster.change(SUPERVISORS, "default", name, {"spec": spec})

    def delete(self, name: str) -> Object:
        """The object as the news of its end shows it."""
        gone = self.cluster.objects["supervisors", "default", name]
        self.cluster.remove(SUPERVISORS, "default", name)
        revision = {"resourceVersion": str(self.cluster.revision)}
        return gone | {"metadata": gone["metadata"] | revision}

    async def sweep(self, *namespaces: str) -> None:
        await self.customs.sweep(self.cluster, namespaces or (None,))

    def start(self, *items: Object) -> None:
        """kopf's first LIST comes in."""
        for item in items:
            self.customs.take(None, item)
        self.ordered.clear()

    def description(self, key: Key = A) -> str | None:
        found = self.customs.get(key)
        return found["spec"].get("description") if found else None


@pytest.fixture
async def world() -> World:
    return World()


async def test_a_change_is_kept_and_ordered_and_what_nobody_reads_is_not_kept(
    world: World,
) -> None:
    item = world.create("a", description="one")
    item["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    world.customs.take("ADDED", item)
    world.customs.take("MODIFIED", world.change("a", description="two"))
    assert world.description() == "two"
    assert world.ordered == [A, A]
    kept = world.customs.get(A)
    assert kept
    assert "managedFields" not in kept["metadata"]
    assert kept["status"] == {}
    assert (len(world.customs), world.customs.keys()) == (1, (A,))


async def test_an_older_event_changes_nothing(world: World) -> None:
    old = world.create("a", description="old")
    world.customs.take("ADDED", world.change("a", description="new"))
    world.ordered.clear()
    world.customs.take("MODIFIED", old)
    assert world.description() == "new"
    assert world.ordered == []


async def test_the_late_news_of_an_end_spares_the_namesake(world: World) -> None:
    world.create("a", description="former")
    end = world.delete("a")
    world.customs.take("ADDED", world.create("a", description="present"))
    world.customs.take("DELETED", end)
    assert world.description() == "present"


async def test_a_deletion_is_taken_and_ordered(world: World) -> None:
    world.customs.take("ADDED", world.create("a"))
    world.ordered.clear()
    world.customs.take("DELETED", world.delete("a"))
    assert world.customs.get(A) is None
    assert world.ordered == [A]


async def test_our_own_write_is_known_before_kopf_brings_it(world: World) -> None:
    item = world.create("a", description="one")
    world.customs.take("ADDED", item)
    world.ordered.clear()
    written = world.change("a", description="two")
    world.customs.put(written)
    assert world.description() == "two"
    assert world.ordered == [], "nobody need look at what we wrote ourselves"
    world.customs.take("MODIFIED", item)
    assert world.description() == "two"


async def test_what_comes_back_of_our_own_write_is_the_object_we_have(world: World) -> None:
    world.customs.take("ADDED", world.create("a"))
    written = world.change("a", description="ours")
    kept = world.customs.put(written)
    world.customs.take("MODIFIED", written)
    assert world.customs.get(A) is kept
    world.customs.take("MODIFIED", world.change("a", description="theirs"))
    assert world.customs.get(A) is not kept


async def test_an_answer_that_kopf_has_overtaken_is_dropped(world: World) -> None:
    written = world.create("a", description="one")
    world.customs.take("MODIFIED", world.change("a", description="two"))
    world.customs.put(written)
    assert world.description() == "two"


async def test_an_answer_about_one_that_is_gone_or_replaced_makes_no_ghost(world: World) -> None:
    world.create("a", description="former")
    written = world.change("a", description="written to the former")
    world.customs.put(written)
    assert world.customs.get(A) is None
    world.delete("a")
    world.customs.take("ADDED", world.create("a", description="present"))
    written["metadata"]["resourceVersion"] = "9999"
    world.customs.put(written)
    assert world.description() == "present"


async def test_nothing_is_trusted_before_kopf_brought_all_that_a_list_shows(world: World) -> None:
    one, other = world.create("a"), world.create("b")
    whole = asyncio.create_task(world.customs.wait_whole())
    assert not world.customs.trusted
    world.customs.take(None, one)
    assert not world.customs.trusted, "nobody has compared yet"
    await world.sweep()
    assert not world.customs.trusted, "b is still to come"
    assert not whole.done()
    world.customs.take(None, other)
    assert world.customs.trusted
    await whole


async def test_an_empty_cluster_is_whole_after_the_first_look(world: World) -> None:
    await world.sweep()
    await world.customs.wait_whole()
    assert world.customs.trusted


async def test_a_ghost_is_found_and_its_key_ordered(world: World) -> None:
    world.start(world.create("a"), world.create("b"))
    await world.sweep()
    world.delete("a")
    await world.sweep()
    assert world.customs.keys() == (B,)
    assert world.ordered == [A]


async def test_one_recreated_unseen_is_a_ghost_until_kopf_brings_the_new_one(world: World) -> None:
    world.start(world.create("a", description="former"))
    await world.sweep()
    world.delete("a")
    present = world.create("a", description="present")
    await world.sweep()
    assert world.customs.get(A) is None
    assert not world.customs.trusted
    world.customs.take("ADDED", present)
    assert world.description() == "present"
    assert world.customs.trusted


async def test_one_newer_than_the_look_is_no_ghost(world: World) -> None:
    await world.sweep()
    world.cluster.latency = 1.0
    looking = asyncio.create_task(world.sweep("other"))
    await asyncio.sleep(0.5)
    item = world.create("a")
    item["metadata"]["resourceVersion"] = str(world.cluster.revision + 1)
    world.customs.take("ADDED", item)
    await looking
    assert world.customs.get(A)


async def test_after_a_relist_nothing_is_trusted_until_a_look_succeeded(world: World) -> None:
    world.start(world.create("a"), world.create("b"))
    await world.sweep()
    assert world.customs.trusted
    world.delete("b")
    world.customs.take(None, world.cluster.objects["supervisors", "default", "a"])
    assert not world.customs.trusted
    world.cluster.fail("list", SUPERVISORS, TransientError("no answer"))
    with pytest.raises(TransientError):
        await world.customs.sweep_when_wanted(world.cluster, (None,), 600)
    assert not world.customs.trusted
    await world.sweep()
    assert world.customs.trusted
    assert world.customs.keys() == (A,)


async def test_a_relist_during_a_look_asks_for_another_one(world: World) -> None:
    item = world.create("a")
    world.start(item)
    await world.sweep()
    world.cluster.latency = 1.0
    looking = asyncio.create_task(world.sweep())
    await asyncio.sleep(0.5)
    world.customs.take(None, item)
    await looking
    assert not world.customs.trusted
    await world.customs.sweep_when_wanted(world.cluster, (None,), 600)
    assert world.customs.trusted
    assert asyncio.get_running_loop().time() == 2


async def test_kopfs_first_list_asks_for_no_look_of_its_own(world: World) -> None:
    item = world.create("a")
    world.customs.take(None, item)
    await world.sweep()
    assert world.customs.trusted


async def test_without_a_reason_a_look_waits_for_its_time(world: World) -> None:
    await world.sweep()
    await world.customs.sweep_when_wanted(world.cluster, (None,), 600)
    assert asyncio.get_running_loop().time() == 600


async def test_one_deleted_before_kopf_could_see_it_is_not_awaited_for_long(world: World) -> None:
    world.create("a")
    await world.sweep()
    world.delete("a")
    assert not world.customs.trusted
    await world.customs.sweep_when_wanted(world.cluster, (None,), 600)
    assert world.customs.trusted
    assert asyncio.get_running_loop().time() == AWAITED_SECONDS


async def test_only_our_namespaces_are_looked_at(world: World) -> None:
    world.start(world.create("a"), world.create("b", namespace="mine"))
    await world.sweep("mine", "default")
    assert len(world.customs) == 2
    world.create("c", namespace="others")
    await world.sweep("mine", "default")
    assert world.customs.trusted
