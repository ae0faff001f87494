"""One pass on a cluster that moves meanwhile: owners that die unseen, pods that go too fast."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from typing_extensions import override

from supervisor_operator.errors import NotFoundError
from supervisor_operator.kube.cluster import PODS, SUPERVISORS, Object, Resource
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
