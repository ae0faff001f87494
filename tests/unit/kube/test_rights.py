"""The right to beat: made once per namespace, never over what somebody else made."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from supervisor_operator.errors import ConflictError, ForbiddenError, TransientError
from supervisor_operator.kube.cluster import (
    POLICIES,
    POLICY_BINDINGS,
    ROLE_BINDINGS,
    ROLES,
    Object,
    Resource,
)
from supervisor_operator.kube.rights import NAME, POLICY_NAME, TRUSTED_SECONDS, BeatRights
from tests.support.fake_cluster import FakeCluster

pytestmark = pytest.mark.looptime


@dataclass(slots=True)
class World:
    now: float = 0.0
    cluster: FakeCluster = field(default_factory=FakeCluster)
    rights: BeatRights = field(init=False)

    def __post_init__(self) -> None:
        self.rights = BeatRights(self.cluster, lambda: self.now)

    def install(self, resource: Resource) -> None:
        self.cluster.add(resource, {"metadata": {"name": POLICY_NAME}}, namespace="")

    def made(self, resource: Resource, namespace: str = "shop") -> Object:
        return self.cluster.objects[resource.plural, namespace, NAME]


@pytest.fixture
def world() -> World:
    return World()


async def test_all_pods_of_the_namespace_may_read_heartbeats_and_patch_their_status_only(
    world: World,
) -> None:
    assert await world.rights.ensure("shop") is None
    verbs = {rule["resources"][0]: rule["verbs"] for rule in world.made(ROLES)["rules"]}
    assert verbs == {"heartbeats": ["get"], "heartbeats/status": ["patch"]}
    binding = world.made(ROLE_BINDINGS)
    assert binding["roleRef"]["name"] == NAME
    assert [subject["name"] for subject in binding["subjects"]] == ["system:serviceaccounts:shop"]


async def test_a_second_agent_costs_no_request(world: World) -> None:
    await world.rights.ensure("shop")
    asked = len(world.cluster.calls)
    await world.rights.ensure("shop")
    assert len(world.cluster.calls) == asked
    await world.rights.ensure("bank")
    assert world.made(ROLES, "bank")


async def test_rights_somebody_removed_are_made_again_after_a_while(world: World) -> None:
    await world.rights.ensure("shop")
    world.cluster.remove(ROLES, "shop", NAME)
    world.now = TRUSTED_SECONDS - 1
    await world.rights.ensure("shop")
    assert (ROLES.plural, "shop", NAME) not in world.cluster.objects
    world.now = TRUSTED_SECONDS
    await world.rights.ensure("shop")
    assert world.made(ROLES)


async def test_rights_that_are_there_are_left_as_they_are(world: World) -> None:
    await world.rights.ensure("shop")
    fresh = BeatRights(world.cluster)
    revision = world.cluster.revision
    assert await fresh.ensure("shop") is None
    assert world.cluster.revision == revision


@pytest.mark.parametrize("resource", [ROLES, ROLE_BINDINGS], ids=["role", "binding"])
async def test_anothers_object_of_that_name_is_not_touched(
    world: World, resource: Resource
) -> None:
    theirs = world.cluster.add(resource, {"metadata": {"name": NAME}, "rules": []}, "shop")
    problem = await world.rights.ensure("shop")
    assert problem == f"A {resource.kind} {NAME} with other content exists already"
    assert world.made(resource) == theirs
    assert await world.rights.ensure("shop") == problem, "a problem is not remembered as solved"


async def test_a_replica_that_was_quicker_is_no_problem(world: World) -> None:
    world.cluster.fail("create", ROLES, ConflictError("already exists", status=409), after=True)
    assert await world.rights.ensure("shop") is None


async def test_a_refusal_is_for_the_caller_and_not_remembered_as_done(world: World) -> None:
    world.cluster.fail("create", ROLES, ForbiddenError("escalation", status=403))
    with pytest.raises(ForbiddenError):
        await world.rights.ensure("shop")
    assert await world.rights.ensure("shop") is None
    assert world.made(ROLES)


async def test_the_policy_is_there_only_with_its_binding(world: World) -> None:
    assert not await world.rights.look_for_policy()
    world.install(POLICIES)
    assert not await world.rights.look_for_policy()
    world.install(POLICY_BINDINGS)
    assert await world.rights.look_for_policy()
    assert world.rights.policy_present
    world.cluster.remove(POLICY_BINDINGS, "", POLICY_NAME)
    assert not await world.rights.look_for_policy()
    assert not world.rights.policy_present


async def test_a_policy_we_may_not_look_for_counts_as_missing(world: World) -> None:
    world.install(POLICIES)
    world.install(POLICY_BINDINGS)
    await world.rights.look_for_policy()
    world.cluster.fail("get", POLICIES, ForbiddenError("no", status=403))
    assert not await world.rights.look_for_policy()


async def test_an_api_server_that_is_away_says_nothing_about_the_policy(world: World) -> None:
    world.install(POLICIES)
    world.install(POLICY_BINDINGS)
    await world.rights.look_for_policy()
    world.cluster.fail("get", POLICIES, TransientError("no answer"))
    with pytest.raises(TransientError):
        await world.rights.look_for_policy()
    assert world.rights.policy_present
