"""One pass over a team whose news is late: what it was is no reason to make or remove anybody."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor_operator.kube.cluster import SUPERVISORS, TEAMS
from supervisor_operator.reconcile import NotYetError
from supervisor_operator.settings import Settings
from supervisor_operator.telemetry.http import Probes
from supervisor_operator.telemetry.metrics import Metrics
from supervisor_operator.wiring import Operator
from tests.support.builders import AGENT, a_supervisor, a_team
from tests.support.fake_cluster import FakeCluster

pytestmark = pytest.mark.looptime

KEY = ("default", "crew")


def members(names: str) -> list[dict[str, Any]]:
    return [{"name": name, "template": {"agent": AGENT}} for name in names]


class World:
    """The operator as it is wired; it knows what `see` has shown it last."""

    def __init__(self) -> None:
        self.cluster = FakeCluster()
        settings = Settings(namespaces=("default",))
        self.operator = Operator(self.cluster, settings, Metrics("test"), Probes())
        self.cluster.add(TEAMS, a_team("crew", members=members("a")))

    async def see(self) -> World:
        for resource, customs in (
            (TEAMS, self.operator._teams),
            (SUPERVISORS, self.operator._supervisors),
        ):
            for item in (await self.cluster.list(resource, "default")).items:
                customs.take("ADDED", item)
            await customs.sweep(self.cluster, ("default",))
        return self

    async def look(self) -> None:
        await self.operator._team_reconciler.reconcile(KEY)

    def there(self) -> list[str]:
        return sorted(name for kind, _, name in self.cluster.objects if kind == SUPERVISORS.plural)


async def test_a_team_that_is_as_it_was_read_gets_its_member() -> None:
    world = await World().see()
    await world.look()
    assert world.there() == ["crew-a"]


async def test_a_team_that_is_gone_gets_nobody() -> None:
    world = await World().see()
    world.cluster.remove(TEAMS, *KEY)
    with pytest.raises(NotYetError):
        await world.look()
    assert world.there() == []
    assert not world.operator._teams.trusted, "what else may be gone is compared at once"


async def test_a_namesake_of_the_team_is_another_one() -> None:
    world = await World().see()
    world.cluster.remove(TEAMS, *KEY)
    world.cluster.add(TEAMS, a_team("crew", members=members("a")))
    with pytest.raises(NotYetError):
        await world.look()
    assert world.there() == []


async def test_who_joined_since_is_not_removed() -> None:
    world = await World().see()
    await world.look()
    world.cluster.change(TEAMS, *KEY, {"spec": {"members": members("ab")}})
    joined = a_supervisor("crew-b")
    sibling = world.cluster.objects[SUPERVISORS.plural, "default", "crew-a"]["metadata"]
    joined["metadata"]["ownerReferences"] = sibling["ownerReferences"]
    item = world.cluster.add(SUPERVISORS, joined)
    world.operator._supervisors.take("ADDED", item)
    with pytest.raises(NotYetError):
        await world.look()
    assert world.there() == ["crew-a", "crew-b"]
    await (await world.see()).look()
    assert world.there() == ["crew-a", "crew-b"]
