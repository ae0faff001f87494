"""One pass on a cluster that moves meanwhile: owners that die unseen, pods that go too fast."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from typing_extensions import override

from supervisor_operator.errors import ConflictError, NotFoundError
from supervisor_operator.kube.burst import FEWEST
from supervisor_operator.kube.cluster import HEARTBEATS, PODS, SUPERVISORS, Object, Resource
from supervisor_operator.reconcile import Reconciler
from supervisor_operator.settings import Settings
from supervisor_operator.telemetry.http import Probes
from supervisor_operator.telemetry.metrics import Metrics
from supervisor_operator.wiring import Operator
from tests.support.builders import a_supervisor
from tests.support.fake_cluster import FakeCluster

pytestmark = pytest.mark.looptime

KEY = ("default", "hello")


class FastWatch(FakeCluster):
    """Shows the end of a pod before the answer to its DELETE."""

    world: World

    @override
    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str | None = None
    ) -> Object:
        answer = await super().delete(resource, namespace, name, uid=uid)
        await self.world.see()
        return answer


@dataclass(slots=True)
class World:
    """The operator as it is wired, with a Supervisor and passes that the test calls for."""

    cluster: FakeCluster
    operator: Operator = field(init=False)

    def __post_init__(self) -> None:
        settings = Settings(namespaces=("default",))
        self.operator = Operator(self.cluster, settings, Metrics("test"), Probes())
        parts = replace(self.operator._reconciler._parts, is_ready=lambda: True)
        self.operator._reconciler = Reconciler(parts)
        self.cluster.add(SUPERVISORS, a_supervisor(heartbeat={"source": "None"}))

    async def see(self) -> None:
        """What the watches of pods and Supervisors would tell."""
        self.operator._watches.world.pods.replace(
            "default", await self.cluster.list(PODS, "default")
        )
        for item in (await self.cluster.list(SUPERVISORS, "default")).items:
            self.operator._supervisors.take("MODIFIED", item)

    async def look(self) -> None:
        await self.see()
        await self.operator._reconciler.reconcile(KEY)

    def edit(self, **spec: Any) -> None:
        self.cluster.change(SUPERVISORS, "default", "hello", {"spec": spec})

    @property
    def pods(self) -> dict[str, Object]:
        return {place[2]: pod for place, pod in self.cluster.objects.items() if place[0] == "pods"}


async def test_a_pod_that_went_with_its_owner_is_not_replaced() -> None:
    """kopf did not tell: both were deleted while its watch was away."""
    world = World(FakeCluster())
    await world.look()
    assert list(world.pods) == ["hello-r1"]
    world.cluster.remove(PODS, "default", "hello-r1")
    await world.see()
    world.cluster.remove(SUPERVISORS, "default", "hello")
    with pytest.raises(NotFoundError):
        await world.look()
    assert world.pods == {}
    assert not world.operator._supervisors.trusted, "a sweep comes before any create"


async def test_an_ended_pod_that_went_with_its_owner_is_not_followed_by_another() -> None:
    """Its exit is on record and the next run is due; only the news of the owner's end is late."""
    world = World(FakeCluster())
    await world.look()
    evicted = {"status": {"phase": "Failed", "reason": "Evicted"}}
    world.cluster.change(PODS, "default", "hello-r1", evicted)
    await world.look()
    world.cluster.remove(PODS, "default", "hello-r1")
    world.cluster.remove(SUPERVISORS, "default", "hello")
    with pytest.raises(NotFoundError):
        await world.look()
    assert world.pods == {}


async def test_a_pod_is_not_replaced_while_its_owner_is_on_its_way_out() -> None:
    world = World(FakeCluster())
    await world.look()
    world.cluster.remove(PODS, "default", "hello-r1")
    await world.see()
    leaving = {"metadata": {"deletionTimestamp": "2026-11-18T12:00:00Z"}}
    world.cluster.change(SUPERVISORS, "default", "hello", leaving)
    with pytest.raises(NotFoundError, match="that we know of is gone"):
        await world.operator._reconciler.reconcile(KEY)
    assert world.pods == {}


async def test_a_pod_of_a_namesakes_is_not_replaced_in_the_name_of_the_dead() -> None:
    world = World(FakeCluster())
    await world.look()
    world.cluster.remove(PODS, "default", "hello-r1")
    await world.see()
    world.cluster.remove(SUPERVISORS, "default", "hello")
    world.cluster.add(SUPERVISORS, a_supervisor(heartbeat={"source": "None"}))
    with pytest.raises(NotFoundError, match="that we know of is gone"):
        await world.operator._reconciler.reconcile(KEY)
    assert world.pods == {}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"agent": {"image": "localhost/agent:2"}}, "TemplateChanged"),
        ({"restartRequest": "please"}, "RestartRequested"),
    ],
)
async def test_a_pod_gone_before_its_delete_is_answered_keeps_the_reason(
    change: dict[str, Any], reason: str
) -> None:
    cluster = FastWatch()
    world = cluster.world = World(cluster)
    await world.look()
    world.edit(**change)
    for _ in range(4):
        await world.look()
    marks = world.pods["hello-r2"]["metadata"]["annotations"]
    assert marks["supervision.dev/reason"] == reason


RUNNING = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True"}],
    "containerStatuses": [{"name": "agent", "state": {"running": {}}}],
}


async def a_well_agent(**spec: Any) -> World:
    """An agent that is ACTIVE, with nothing left to do about it."""
    world = World(FakeCluster())
    world.edit(**spec)
    await world.look()
    world.cluster.change(PODS, "default", "hello-r1", {"status": RUNNING})
    await world.look()
    await world.look()
    return world


def rounds_spared(world: World, rounds: int) -> int:
    return sum(world.operator._reconciler.is_still(KEY) for _ in range(rounds))


async def test_of_ten_looks_at_an_agent_that_is_well_nine_are_spared() -> None:
    world = await a_well_agent()
    assert rounds_spared(world, 50) == 45


@pytest.mark.parametrize(
    "change",
    [
        lambda world: world.cluster.change(PODS, "default", "hello-r1", {"status": {"a": 1}}),
        lambda world: world.edit(description="another"),
    ],
    ids=["its pod changed", "it was edited"],
)
async def test_what_changed_is_looked_at(change: Callable[[World], None]) -> None:
    world = await a_well_agent()
    change(world)
    await world.see()
    assert rounds_spared(world, 10) == 0


def ordered(world: World) -> bool:
    """Whether the agent is to be looked at; then takes the order away."""
    queue = world.operator._queue
    found = len(queue) > 0
    while len(queue):
        queue._waiting.pop()
    return found


async def test_our_own_words_that_come_back_order_no_pass() -> None:
    world = World(FakeCluster())
    await world.look()
    ordered(world)
    world.cluster.change(PODS, "default", "hello-r1", {"status": RUNNING})
    await world.look()
    ordered(world)
    await world.see()
    assert not ordered(world), "the status is the one that we wrote"
    world.edit(description="another")
    await world.see()
    assert ordered(world)


class WhileCreating(FakeCluster):
    """Something else happens before the answer to a create, and the watches show it."""

    world: World
    meanwhile: Callable[[], None]

    @override
    async def create(
        self, resource: Resource, namespace: str | None, item: Object, *, dry_run: bool = False
    ) -> Object:
        answer = await super().create(resource, namespace, item, dry_run=dry_run)
        if resource == PODS:
            self.meanwhile()
            await self.world.see()
        return answer


@pytest.mark.parametrize("is_edited", [False, True], ids=["its own pod", "an edit"])
async def test_of_what_came_during_a_pass_only_an_edit_calls_for_another(
    *, is_edited: bool
) -> None:
    cluster = WhileCreating()
    world = cluster.world = World(cluster)
    queue = world.operator._queue

    def meanwhile() -> None:
        queue.add(KEY)
        if is_edited:
            world.edit(description="another")

    cluster.meanwhile = meanwhile
    await world.see()
    key = await queue.get()
    with suppress(ConflictError):  # the status is that of the object before the edit
        await world.operator._reconciler.reconcile((key[0], key[1]))
    queue.done(key)
    assert len(queue) == is_edited


async def test_who_belongs_to_others_is_always_looked_at() -> None:
    world = await a_well_agent(parentRef={"name": "boss"})
    assert rounds_spared(world, 10) == 0


async def test_who_waits_for_somebody_is_always_looked_at() -> None:
    world = World(FakeCluster())
    await world.look()
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    world.cluster.change(PODS, "default", "hello-r1", {"status": {"conditions": [unschedulable]}})
    await world.look()
    await world.look()
    assert rounds_spared(world, 10) == 0


async def test_who_is_starting_is_mostly_spared() -> None:
    world = World(FakeCluster())
    await world.look()
    await world.look()
    assert rounds_spared(world, 20) == 18


class BeatingAgent:
    """A well agent that beats each 10 s and may be silent for 40 s."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.world = World(FakeCluster())
        operator = self.world.operator
        operator._rights.policy_present = True
        operator._watches.world.beats._clock = lambda: self.now
        parts = operator._reconciler._parts
        clocks = replace(parts.clocks, mono=lambda: self.now)
        operator._reconciler = Reconciler(replace(parts, clocks=clocks))
        self.world.edit(heartbeat={"source": "File", "intervalSeconds": 10, "startupSeconds": 99})

    async def start(self) -> None:
        await self.world.look()
        self.world.cluster.change(PODS, "default", "hello-r1", {"status": RUNNING})
        await self.beat(1)
        for _ in range(2):
            await self.world.look()

    async def beat(self, number: int) -> None:
        status = {"sequence": number, "beatAgeMillis": 0}
        cluster = self.world.cluster
        cluster.change(HEARTBEATS, "default", "hello-r1", {"status": status})
        found = await cluster.get(HEARTBEATS, "default", "hello-r1")
        self.world.operator._watches._on_heartbeat("MODIFIED", found)

    def moved(self) -> float | None:
        return self.world.operator._reconciler.moved_deadline(KEY)


async def test_a_beat_moves_the_deadline_without_a_pass() -> None:
    agent = BeatingAgent()
    await agent.start()
    agent.now += 35
    assert agent.moved() == 5
    await agent.beat(2)
    assert agent.moved() == 40
    agent.now += 40
    assert agent.moved() is None, "silence calls for a pass"


async def test_a_heartbeat_that_is_gone_moves_nothing() -> None:
    agent = BeatingAgent()
    await agent.start()
    found = await agent.world.cluster.get(HEARTBEATS, "default", "hello-r1")
    agent.world.operator._watches._on_heartbeat("DELETED", found)
    assert agent.moved() is None


async def test_an_edit_moves_nothing() -> None:
    agent = BeatingAgent()
    await agent.start()
    agent.world.edit(heartbeat={"source": "File", "intervalSeconds": 1})
    await agent.world.see()
    assert agent.moved() is None


async def test_many_starting_agents_are_told_of_when_there_is_something_to_tell() -> None:
    world = World(FakeCluster())
    burst = world.operator._reconciler._parts.burst
    for _ in range(FEWEST):
        burst.note()
    await world.look()
    assert "phase" not in (world.operator._supervisors.get(KEY) or {})["status"]
    world.cluster.change(PODS, "default", "hello-r1", {"status": RUNNING})
    await world.look()
    assert (world.operator._supervisors.get(KEY) or {})["status"]["phase"] == "ACTIVE"
    events = [item["reason"] for place, item in world.cluster.objects.items() if "events" in place]
    assert events == ["Active"]
