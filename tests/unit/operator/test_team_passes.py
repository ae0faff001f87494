"""Passes over a team on a cluster that refuses, moves meanwhile, or takes a team away."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import pytest

from supervisor_operator.errors import ForbiddenError
from supervisor_operator.kube.cluster import PODS, SUPERVISORS, TEAMS, Object
from supervisor_operator.reconcile import NotYetError, Reconciler
from supervisor_operator.settings import Settings
from supervisor_operator.team_reconcile import TeamReconciler
from supervisor_operator.telemetry.http import Probes
from supervisor_operator.telemetry.metrics import Metrics
from supervisor_operator.wiring import Operator
from tests.support.builders import a_supervisor, a_team
from tests.support.fake_cluster import FakeCluster

pytestmark = pytest.mark.looptime

NONE = {"source": "None"}
TEAM = ("default", "crew")


def members(names: str, **template: Any) -> list[dict[str, Any]]:
    own = {"agent": {"image": "a"}, "heartbeat": NONE} | template
    return [{"name": name, "template": own} for name in names]


@dataclass(slots=True)
class World:
    """The operator as it is wired; the test says when it sees and when it looks."""

    cluster: FakeCluster = field(default_factory=FakeCluster)
    operator: Operator = field(init=False)

    def __post_init__(self) -> None:
        settings = Settings(namespaces=("default",))
        self.operator = Operator(self.cluster, settings, Metrics("test"), Probes())
        for customs in (self.operator._supervisors, self.operator._teams):
            customs._swept = True
        parts = replace(self.operator._reconciler._parts, is_ready=lambda: True)
        self.operator._reconciler = Reconciler(parts)

    async def see(self) -> Self:
        listing = await self.cluster.list(PODS, "default")
        self.operator._watches.world.pods.replace("default", listing)
        for resource, customs in (
            (SUPERVISORS, self.operator._supervisors),
            (TEAMS, self.operator._teams),
        ):
            there = (await self.cluster.list(resource, "default")).items
            names = {item["metadata"]["name"] for item in there}
            for key in set(customs.keys()) - {("default", name) for name in names}:
                customs.take("DELETED", {"metadata": customs._items[key]["metadata"]})
            for item in there:
                customs.take("MODIFIED", item)
        return self

    async def look(self) -> Self:
        await self.see()
        with_team = self.operator._team_reconciler
        assert isinstance(with_team, TeamReconciler)
        await with_team.reconcile(TEAM)
        await self.see()
        for key in self.operator._supervisors.keys():  # noqa: SIM118 - no dict
            await self.operator._reconciler.reconcile(key)
        return await self.see()

    def edit(self, **spec: Any) -> None:
        self.cluster.change(TEAMS, *TEAM, {"spec": spec})

    def names(self, plural: str) -> list[str]:
        return sorted(name for kind, _, name in self.cluster.objects if kind == plural)

    def condition(self, kind: str) -> tuple[str, str]:
        status = self.cluster.objects["supervisorteams", *TEAM]["status"]
        found = next(one for one in status["conditions"] if one["type"] == kind)
        return found["reason"], found.get("message", "")

    def supervisor(self, name: str) -> Object:
        return self.cluster.objects["supervisors", "default", name]


async def a_crew(names: str = "ab", **spec: Any) -> World:
    world = World()
    world.cluster.add(TEAMS, a_team("crew", members=members(names), **spec))
    await world.look()
    return await world.look()


async def test_members_get_pods_and_know_their_team() -> None:
    world = await a_crew()
    assert world.names("pods") == ["crew-a-r1", "crew-b-r1"]
    assert world.supervisor("crew-a")["status"]["memberOf"]["team"] == "crew"
    labels = world.supervisor("crew-a")["metadata"]["labels"]
    assert labels["supervision.dev/team"] == "crew"


async def test_a_refused_member_is_named_and_the_others_are_made() -> None:
    world = await a_crew("a")
    world.edit(members=members("abc"))
    world.cluster.fail("create", SUPERVISORS, ForbiddenError("no room", status=403))
    await world.look()
    said = ("Refused", "Supervisor crew-b was refused: no room")
    assert world.condition("MembersResolved") == said
    assert world.names("supervisors") == ["crew-a", "crew-c"]
    await (await world.look()).look()
    assert world.condition("MembersResolved")[0] == "Resolved"
    assert world.names("supervisors") == ["crew-a", "crew-b", "crew-c"]


async def test_what_somebody_edits_while_it_is_put_back_is_looked_at_again() -> None:
    world = await a_crew("a")
    world.cluster.change(SUPERVISORS, "default", "crew-a", {"spec": {"agent": {"image": "x"}}})
    await world.see()
    newer = {"spec": {"agent": {"image": "y"}, "restartRequest": "now"}}
    world.cluster.change(SUPERVISORS, "default", "crew-a", newer)
    await world.operator._team_reconciler.reconcile(TEAM)
    assert world.supervisor("crew-a")["spec"]["agent"]["image"] == "y", "not from an old view"
    await world.look()
    spec = world.supervisor("crew-a")["spec"]
    assert (spec["agent"]["image"], spec["restartRequest"]) == ("a", "now")


async def test_a_namesake_of_a_former_member_is_not_deleted() -> None:
    world = await a_crew()
    world.edit(members=members("a"))
    world.cluster.remove(SUPERVISORS, "default", "crew-b")
    world.cluster.add(SUPERVISORS, a_supervisor("crew-b", heartbeat=NONE))
    team = next(i for i in (await world.cluster.list(TEAMS, "default")).items)
    world.operator._teams.take("MODIFIED", team)
    await world.operator._team_reconciler.reconcile(TEAM)
    assert "crew-b" in world.names("supervisors")


async def test_a_supervisor_that_only_the_server_knows_of_is_not_gone() -> None:
    world = await a_crew("a", supervisorRef={"name": "boss"}, whenSupervisorGone="Keep")
    assert world.condition("SupervisorResolved")[0] == "SupervisorNotFound"
    world.cluster.add(SUPERVISORS, a_supervisor("boss", heartbeat=NONE))
    with pytest.raises(NotYetError):
        await world.operator._team_reconciler.reconcile(TEAM)
    await world.look()
    assert world.condition("SupervisorResolved")[0] == "Resolved"
    assert world.supervisor("boss")["status"]["totalMembers"] == 1


@pytest.mark.parametrize("way", ["gone", "going"])
async def test_a_stopped_team_that_is_deleted_starts_nobody(way: str) -> None:
    world = await a_crew(operatingMode="Stopped")
    assert world.names("pods") == []
    if way == "gone":
        world.cluster.remove(TEAMS, *TEAM)
    else:
        gone = {"metadata": {"deletionTimestamp": "2026-11-18T12:00:00Z"}}
        world.cluster.change(TEAMS, *TEAM, gone)
    await world.look()
    assert world.names("pods") == []
    free: dict[str, Any] = {"metadata": {"ownerReferences": None}}
    world.cluster.change(SUPERVISORS, "default", "crew-a", free)
    await world.look()
    assert world.names("pods") == ["crew-a-r1"], "an orphan is an ordinary Supervisor"


async def test_one_that_leads_101_teams_shows_100_and_counts_all() -> None:
    world = await a_crew("a", supervisorRef={"name": "boss"})
    world.cluster.add(SUPERVISORS, a_supervisor("boss", heartbeat=NONE))
    for number in range(100):
        other = a_team(f"team-{number:03}", members=[], supervisorRef={"name": "boss"})
        world.cluster.add(TEAMS, other)
    await world.look()
    status = world.supervisor("boss")["status"]
    assert (len(status["teams"]), status["totalTeams"]) == (100, 101)
