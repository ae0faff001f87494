"""Client and reflector against a real API server: its refusals, its pages, its watches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from supervisor_operator.errors import ConflictError, GoneError, InvalidError, NotFoundError
from supervisor_operator.kube.client import KubeCluster, open_cluster
from supervisor_operator.kube.cluster import LEASES, PODS, ROLES, SUPERVISORS, Object
from supervisor_operator.kube.reflector import Reflector
from supervisor_operator.kube.store import Store
from tests.cluster.local import Cluster
from tests.support.builders import a_supervisor
from tests.support.forwarder import Forwarder, forwarder
from tests.support.kubectl import Kubectl

PROMPTLY = 20.0


@pytest.fixture
async def cluster(control: Cluster) -> AsyncIterator[KubeCluster]:
    async with open_cluster(control.kubeconfig) as cluster:
        yield cluster


def a_pod(name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "agent", "image": "localhost/agent:1"}]},
    }


def an_end(uid: str) -> Object:
    return {"metadata": {"uid": uid}, "spec": {"activeDeadlineSeconds": 1}}


def labelled(name: str) -> Object:
    item = a_supervisor(name)
    item["metadata"]["labels"] = {"mine": "yes"}
    return item


def a_role(name: str) -> Object:
    return {"metadata": {"name": name, "labels": {"many": "yes"}}, "rules": []}


async def test_the_server_says_its_version(cluster: KubeCluster) -> None:
    assert await cluster.version() >= (1, 32)


async def test_create_twice_is_a_conflict_and_a_dry_run_leaves_nothing(
    cluster: KubeCluster, namespace: str
) -> None:
    await cluster.create(PODS, namespace, a_pod("a"), dry_run=True)
    with pytest.raises(NotFoundError, match='pods "a" not found'):
        await cluster.get(PODS, namespace, "a")
    made = await cluster.create(PODS, namespace, a_pod("a"))
    with pytest.raises(ConflictError, match='pods "a" already exists') as twice:
        await cluster.create(PODS, namespace, a_pod("a"))
    assert twice.value.reason == "AlreadyExists"
    assert (await cluster.get(PODS, namespace, "a"))["metadata"]["uid"] == made["metadata"]["uid"]
    assert {field["manager"] for field in made["metadata"]["managedFields"]} == {
        "supervisor-operator"
    }


async def test_a_wrong_object_is_refused_in_the_servers_words(
    cluster: KubeCluster, namespace: str
) -> None:
    wrong = a_pod("a")
    wrong["spec"]["containers"][0]["image"] = ""
    with pytest.raises(InvalidError, match=r"spec.containers\[0\].image: Required value"):
        await cluster.create(PODS, namespace, wrong)
    unknown = a_pod("a")
    unknown["spec"]["imagine"] = True
    with pytest.raises(InvalidError, match=r'unknown field "spec.imagine"') as refused:
        await cluster.create(PODS, namespace, unknown)
    assert refused.value.status == 400


async def test_a_list_is_read_page_by_page_and_selected(
    cluster: KubeCluster, namespace: str
) -> None:
    names = {f"role-{number:04}" for number in range(620)}
    await asyncio.gather(*(cluster.create(ROLES, namespace, a_role(name)) for name in names))
    found = await cluster.list(ROLES, namespace, selector="many in (yes)")
    assert {item["metadata"]["name"] for item in found.items} == names
    assert found.items[0]["kind"] == "Role"
    nothing = await cluster.list(ROLES, namespace, selector="!many")
    assert nothing.items == []
    bare = await cluster.list(ROLES, namespace, metadata_only=True)
    assert len(bare.items) == 620
    assert "rules" not in bare.items[0]


async def test_a_status_write_needs_the_newest_version(
    cluster: KubeCluster, namespace: str
) -> None:
    made = await cluster.create(SUPERVISORS, namespace, a_supervisor("a"))
    said = made | {"status": {"observedGeneration": 1, "phase": "SPAWNING"}}
    written = await cluster.replace_status(SUPERVISORS, namespace, said)
    assert written["status"]["phase"] == "SPAWNING"
    with pytest.raises(ConflictError, match="the object has been modified"):
        await cluster.replace_status(SUPERVISORS, namespace, said)


async def test_a_patch_and_a_delete_hit_this_incarnation_or_nobody(
    cluster: KubeCluster, namespace: str
) -> None:
    uid = (await cluster.create(PODS, namespace, a_pod("a")))["metadata"]["uid"]
    with pytest.raises(InvalidError, match=r"metadata.uid: .* field is immutable"):
        await cluster.merge(PODS, namespace, "a", an_end("another"))
    with pytest.raises(ConflictError, match="does not match the UID in record"):
        await cluster.delete(PODS, namespace, "a", uid="another")
    patched = await cluster.merge(PODS, namespace, "a", an_end(uid))
    assert patched["spec"]["activeDeadlineSeconds"] == 1
    await cluster.delete(PODS, namespace, "a", uid=uid)
    with pytest.raises(NotFoundError):
        await cluster.delete(PODS, namespace, "a")


async def test_a_lease_is_written_with_its_version(cluster: KubeCluster, namespace: str) -> None:
    lease = {"metadata": {"name": "a"}, "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}
    made = await cluster.create(LEASES, namespace, lease)
    taken = await cluster.replace(LEASES, namespace, made | {"spec": {"holderIdentity": "b"}})
    assert taken["spec"] == {"holderIdentity": "b"}
    with pytest.raises(ConflictError):
        await cluster.replace(LEASES, namespace, made)


async def test_a_watch_tells_what_happens_from_a_revision_on(
    cluster: KubeCluster, namespace: str
) -> None:
    start = await cluster.list(SUPERVISORS, namespace)
    large = labelled("large")
    large["metadata"]["annotations"] = {"note": "x" * 200_000}
    await cluster.create(SUPERVISORS, namespace, large)
    await cluster.create(SUPERVISORS, namespace, a_supervisor("stranger"))
    await cluster.delete(SUPERVISORS, namespace, "large")
    async with cluster.watch(SUPERVISORS, namespace, start.revision, selector="mine") as events:
        first, second = await anext(events), await anext(events)
    assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "large")
    assert second["type"] == "DELETED"
    born, dead = (int(event["object"]["metadata"]["resourceVersion"]) for event in (first, second))
    assert dead > born, "a delete has a revision of its own"


async def test_a_watch_ends_well_when_its_time_is_up(cluster: KubeCluster, namespace: str) -> None:
    start = await cluster.list(PODS, namespace)
    async with cluster.watch(PODS, namespace, start.revision, seconds=1) as events:
        kinds = [event["type"] async for event in events]
    assert set(kinds) <= {"BOOKMARK"}


async def test_a_forgotten_revision_is_gone(cluster: KubeCluster, namespace: str) -> None:
    async with cluster.watch(SUPERVISORS, namespace, "1") as events:
        with pytest.raises(GoneError, match="too old resource version"):
            await anext(events)


@pytest.fixture
def kubeconfig(control: Cluster) -> Any:
    return yaml.safe_load(Path(control.kubeconfig).read_text())


@pytest.fixture
async def road(kubeconfig: Any, tmp_path: Path) -> AsyncIterator[tuple[Forwarder, str]]:
    """A way to the cluster that can be cut, and its kubeconfig."""
    target = kubeconfig["clusters"][0]["cluster"]
    server = urlsplit(target["server"])
    async with forwarder(str(server.hostname), int(server.port or 443)) as road:
        target["server"] = f"https://127.0.0.1:{road.port}"
        target["tls-server-name"] = str(server.hostname)
        file = tmp_path / "kubeconfig"
        file.write_text(yaml.safe_dump(kubeconfig))
        yield road, str(file)


class Follower:
    """A reflector at work, the news it told, in order, and how often it had to list."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.store: Store[str] = Store(lambda item: str(item["metadata"]["name"]), lambda _: "")
        self.news: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.lists = 0

    def reflector(self, cluster: KubeCluster) -> Reflector[str]:
        return Reflector(
            cluster,
            SUPERVISORS,
            self.store,
            namespace=self.namespace,
            selector="mine=yes",
            on_change=self._note,
            clock=time.monotonic,
        )

    def count(self, verb: str, *_: object) -> None:
        self.lists += verb == "list"

    def _note(self, kind: str, item: Object) -> None:
        self.news.put_nowait((kind, item["metadata"]["name"]))

    async def told(self) -> tuple[str, str]:
        return await asyncio.wait_for(self.news.get(), PROMPTLY)


@pytest.mark.parametrize(("forgotten", "lists"), [(False, 1), (True, 2)])
async def test_a_delete_during_a_cut_is_noticed(
    road: tuple[Forwarder, str], kubectl: Kubectl, *, forgotten: bool, lists: int
) -> None:
    wire, kubeconfig = road
    follower = Follower(kubectl.namespace)
    async with open_cluster(kubeconfig, on_call=follower.count) as cluster:
        reflector = follower.reflector(cluster)
        running = asyncio.create_task(reflector.run())
        kubectl.create(labelled("a"))
        assert await follower.told() == ("ADDED", "a")
        kubectl.create(labelled("b"))
        assert await follower.told() == ("ADDED", "b")
        wire.cut()
        kubectl("delete", "supervisor", "a")
        if forgotten:
            reflector._revision = "1"
        wire.mend()
        assert await follower.told() == ("DELETED", "a")
        assert list(follower.store.values()) == ["b"]
        kubectl.create(labelled("c"))
        assert await follower.told() == ("ADDED", "c")
        assert follower.lists == lists
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
