"""Before the work: each thing that does not fit is named, with the next step."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from typing_extensions import override

from supervisor_operator.errors import (
    ClusterError,
    ForbiddenError,
    NotFoundError,
    TransientError,
    UnauthorizedError,
)
from supervisor_operator.kube.cluster import HEARTBEATS, NAMESPACES, SUPERVISORS, TEAMS, Resource
from supervisor_operator.preflight import PreflightError, check_cluster
from supervisor_operator.settings import Settings
from tests.support.fake_cluster import FakeCluster

pytestmark = pytest.mark.looptime

WAIT = Settings(crd_wait_seconds=5.0)
MISSING = NotFoundError("the server could not find the requested resource", status=404)


class SlowStart(FakeCluster):
    """An API server that first answers with errors."""

    def __init__(self, *errors: ClusterError) -> None:
        super().__init__()
        self._errors = list(errors)

    @override
    async def version(self) -> tuple[int, int]:
        if self._errors:
            raise self._errors.pop(0)
        return await super().version()


@dataclass(slots=True)
class World:
    cluster: FakeCluster = field(default_factory=FakeCluster)

    def lacks(self, resource: Resource, looks: int, error: ClusterError = MISSING) -> None:
        for _ in range(looks):
            self.cluster.fail("list", resource, error)


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_cluster_that_has_all_is_taken_at_once() -> None:
    await check_cluster(FakeCluster(), WAIT)
    assert now() == 0


@pytest.mark.parametrize("version", [(1, 32), (1, 40), (2, 0)])
async def test_this_version_or_newer_is_taken(version: tuple[int, int]) -> None:
    cluster = FakeCluster()
    cluster.server_version = version
    await check_cluster(cluster, WAIT)


async def test_an_older_server_is_refused() -> None:
    cluster = FakeCluster()
    cluster.server_version = (1, 31)
    with pytest.raises(PreflightError, match=r"is Kubernetes 1\.31, 1\.32 or newer is needed"):
        await check_cluster(cluster, WAIT)


async def test_a_server_that_is_just_starting_is_waited_for() -> None:
    await check_cluster(SlowStart(*[TransientError("refused")] * 3), WAIT)
    assert now() == 3


async def test_a_server_that_has_not_read_its_roles_yet_is_waited_for() -> None:
    await check_cluster(SlowStart(*[ForbiddenError("no role", status=403)] * 3), WAIT)
    assert now() == 3


async def test_a_server_that_stays_away_is_given_up_in_time() -> None:
    with pytest.raises(PreflightError, match="does not answer: refused"):
        await check_cluster(SlowStart(*[TransientError("refused")] * 100), WAIT)
    assert now() == 5


async def test_credentials_that_are_not_accepted_are_not_tried_again() -> None:
    with pytest.raises(UnauthorizedError):
        await check_cluster(SlowStart(UnauthorizedError("Unauthorized", status=401)), WAIT)
    assert now() == 0


async def test_crds_that_come_later_are_waited_for() -> None:
    world = World()
    world.lacks(HEARTBEATS, looks=2)
    await check_cluster(world.cluster, WAIT)
    assert now() == 2


async def test_crds_that_do_not_come_are_named_with_the_command_that_installs_them() -> None:
    world = World()
    world.lacks(SUPERVISORS, looks=10)
    world.lacks(TEAMS, looks=10)
    with pytest.raises(PreflightError) as found:
        await check_cluster(world.cluster, WAIT)
    assert str(found.value) == (
        "the CRDs of supervisors, supervisorteams are not installed: "
        "run kubectl apply --server-side -f crds/"
    )
    assert now() == 5


async def test_without_the_right_to_list_the_rbac_rules_are_asked_for() -> None:
    world = World()
    world.lacks(TEAMS, 10, ForbiddenError("cannot list", status=403))
    with pytest.raises(PreflightError, match="supervisorteams may not be listed: cannot list"):
        await check_cluster(world.cluster, WAIT)
    assert now() == 5


async def test_rights_that_are_given_later_are_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.lacks(SUPERVISORS, 2, ForbiddenError("cannot list", status=403))
    await check_cluster(world.cluster, WAIT)
    assert now() == 2
    (told,) = [record.message for record in caplog.records]
    assert told.endswith("cannot list. Apply the operator's RBAC rules (waiting for it)")


async def test_what_comes_after_ten_minutes_is_found_within_a_second() -> None:
    """Had the process ended by then, the kubelet might wait five minutes more."""
    world = World()
    world.lacks(SUPERVISORS, 605)
    await check_cluster(world.cluster, Settings())
    assert now() == 605


async def test_a_hiccup_while_looking_for_crds_does_not_mean_that_they_are_missing() -> None:
    cluster = FakeCluster()
    cluster.fail("list", TEAMS, TransientError("503"))
    await check_cluster(cluster, WAIT)


@pytest.fixture
def two() -> Settings:
    return Settings(crd_wait_seconds=5.0, namespaces=("shop", "bank"))


async def test_a_namespace_that_is_not_there_is_named(two: Settings) -> None:
    cluster = FakeCluster()
    cluster.add(NAMESPACES, {"metadata": {"name": "shop"}}, namespace="")
    with pytest.raises(PreflightError, match="there is no namespace bank: create it or name"):
        await check_cluster(cluster, two)


async def test_namespaces_need_not_be_visible_and_crds_are_looked_for_inside(
    two: Settings,
) -> None:
    cluster = FakeCluster()
    for _ in range(2):
        cluster.fail("get", NAMESPACES, ForbiddenError("cannot get", status=403))
    await check_cluster(cluster, two)
    assert ("list", "supervisors", "shop") in cluster.calls
