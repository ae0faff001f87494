"""The client against a real HTTP server that answers, refuses, cuts and falls silent."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientResponse
from kubernetes.aio.config import incluster_config

from supervisor_operator import errors
from supervisor_operator.errors import ClusterError, LeadershipLostError, TransientError
from supervisor_operator.kube import configuration, wire
from supervisor_operator.kube.client import DEEPEST, KubeCluster, open_cluster
from supervisor_operator.kube.cluster import LEASES, NAMESPACES, PODS, SUPERVISORS, Object
from supervisor_operator.kube.compact import compact
from tests.support.api_server import ApiServer, a_kubeconfig, a_status, api_server

Calls = list[tuple[str, str, str]]


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with api_server() as server:
        yield server


@pytest.fixture
def calls() -> Calls:
    return []


@pytest.fixture
async def cluster(server: ApiServer, calls: Calls, tmp_path: Path) -> AsyncIterator[KubeCluster]:
    def note(verb: str, plural: str, code: str, seconds: float) -> None:
        assert seconds > 0
        calls.append((verb, plural, code))

    file = a_kubeconfig(tmp_path, server.url, {"token": "secret"})
    async with open_cluster(file, on_call=note) as cluster:
        yield cluster


def a_pod(name: str = "a", revision: int = 1, **more: Any) -> Object:
    return {"metadata": {"name": name, "resourceVersion": str(revision)}, **more}


def a_page(*names: str, revision: str = "9", following: str = "") -> Object:
    metadata = {"resourceVersion": revision} | ({"continue": following} if following else {})
    return {"metadata": metadata, "items": [a_pod(name) for name in names]}


async def seen(cluster: KubeCluster, revision: str = "5") -> list[Object]:
    async with cluster.watch(PODS, "one", revision, selector="app=a,b", seconds=7) as events:
        return [event async for event in events]


async def test_get_asks_for_one_object_with_our_token(
    server: ApiServer, cluster: KubeCluster, calls: Calls
) -> None:
    server.says(a_pod())
    assert await cluster.get(PODS, "one", "a") == a_pod()
    asked = server.last
    assert (asked.method, asked.path) == ("GET", "/api/v1/namespaces/one/pods/a")
    assert asked.headers["Authorization"] == "Bearer secret"
    assert asked.headers["User-Agent"] == "supervisor-operator"
    assert calls == [("get", "pods", "200")]


async def test_kinds_without_namespace_and_kinds_of_groups_have_their_own_paths(
    server: ApiServer, cluster: KubeCluster
) -> None:
    for _ in range(3):
        server.says(a_pod())
    await cluster.get(NAMESPACES, None, "one")
    await cluster.get(SUPERVISORS, "one", "a")
    await cluster.get(PODS, "one", "a/../b")
    assert [asked.path for asked in server.asked] == [
        "/api/v1/namespaces/one",
        "/apis/supervision.dev/v1alpha1/namespaces/one/supervisors/a",
        "/api/v1/namespaces/one/pods/a/../b",
    ]


async def test_create_is_strict_and_can_be_a_dry_run(
    server: ApiServer, cluster: KubeCluster
) -> None:
    server.says(a_pod(), 201)
    server.says(a_pod(), 201)
    await cluster.create(PODS, "one", a_pod())
    assert server.last.query == {"fieldValidation": "Strict"}
    await cluster.create(PODS, "one", a_pod(), dry_run=True)
    assert server.last.query == {"fieldValidation": "Strict", "dryRun": "All"}
    assert server.last.body == a_pod()


async def test_the_other_writes_go_where_they_should(
    server: ApiServer, cluster: KubeCluster, calls: Calls
) -> None:
    for _ in range(4):
        server.says(a_pod())
    await cluster.replace(PODS, "one", a_pod())
    await cluster.replace_status(SUPERVISORS, "one", a_pod())
    await cluster.merge(PODS, "one", "a", {"spec": {"activeDeadlineSeconds": 1}})
    await cluster.delete(PODS, "one", "a", uid="u1")
    assert [asked.method for asked in server.asked] == ["PUT", "PUT", "PATCH", "DELETE"]
    assert server.asked[1].path.endswith("/namespaces/one/supervisors/a/status")
    assert server.asked[2].headers["Content-Type"] == "application/merge-patch+json"
    assert server.asked[3].body["preconditions"] == {"uid": "u1"}
    assert calls[1] == ("update", "supervisors/status", "200")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.InvalidError),
        (401, errors.UnauthorizedError),
        (403, errors.ForbiddenError),
        (404, errors.NotFoundError),
        (405, errors.ClusterError),
        (409, errors.ConflictError),
        (410, errors.GoneError),
        (422, errors.InvalidError),
        (429, errors.TransientError),
        (500, errors.TransientError),
        (503, errors.TransientError),
    ],
)
async def test_a_refusal_keeps_the_servers_own_words(
    server: ApiServer, cluster: KubeCluster, calls: Calls, status: int, kind: type[ClusterError]
) -> None:
    server.refuses(status, "Because", 'pods "a" is odd', Retry_After="3")
    with pytest.raises(ClusterError, match=r'^pods "a" is odd$') as refused:
        await cluster.create(PODS, "one", a_pod())
    assert type(refused.value) is kind
    error = refused.value
    assert (error.status, error.reason, error.retry_after) == (status, "Because", 3.0)
    assert calls == [("create", "pods", str(status))]


async def test_a_refusal_of_something_in_between_says_what_was_asked(
    server: ApiServer, cluster: KubeCluster
) -> None:
    server.says("<html>no backend</html>", 502, Retry_After="Fri, 31 Dec 1999 23:59:59 GMT")
    with pytest.raises(TransientError, match=r"GET /version: 502 .*no backend") as refused:
        await cluster.version()
    assert refused.value.retry_after is None


@pytest.mark.parametrize("minor", ["36", "36+"])
async def test_version_is_two_numbers(server: ApiServer, cluster: KubeCluster, minor: str) -> None:
    server.says({"major": "1", "minor": minor})
    assert await cluster.version() == (1, 36)


async def test_a_connection_that_ends_without_an_answer_is_transient(
    server: ApiServer, cluster: KubeCluster, calls: Calls
) -> None:
    server.hangs_up()
    with pytest.raises(TransientError, match="POST /api/v1/namespaces/one/pods") as broken:
        await cluster.create(PODS, "one", a_pod())
    assert broken.value.status is None
    assert calls == [("create", "pods", "<error>")]


async def test_nobody_listening_and_half_an_answer_are_transient(
    server: ApiServer, cluster: KubeCluster, tmp_path: Path
) -> None:
    server.says('{"metadata": {')
    with pytest.raises(TransientError):
        await cluster.get(PODS, "one", "a")
    closed = a_kubeconfig(tmp_path, "http://127.0.0.1:1", {})
    async with open_cluster(closed) as nowhere:
        with pytest.raises(TransientError, match="cannot be reached"):
            await nowhere.version()


async def test_list_follows_the_pages_and_keeps_the_revision_of_the_first(
    server: ApiServer, cluster: KubeCluster, calls: Calls
) -> None:
    server.says(a_page("a", "b", revision="9", following="more"))
    server.says(a_page("c", revision="10"))
    found = await cluster.list(PODS, selector="app in (a,b)")
    assert [item["metadata"]["name"] for item in found.items] == ["a", "b", "c"]
    assert {(item["apiVersion"], item["kind"]) for item in found.items} == {("v1", "Pod")}
    assert found.revision == "9"
    first, second = (asked.query for asked in server.asked)
    assert first == {"labelSelector": "app in (a,b)", "limit": "250"}
    assert second == first | {"continue": "more"}
    assert calls == [("list", "pods", "200")] * 2


async def test_list_whose_token_expired_starts_over_without_pages(
    server: ApiServer, cluster: KubeCluster
) -> None:
    server.says(a_page("a", following="more"))
    server.refuses(410, "Expired", "The provided continue parameter is too old")
    server.says(a_page("b", "c", revision="12"))
    found = await cluster.list(PODS, "one")
    assert [item["metadata"]["name"] for item in found.items] == ["b", "c"]
    assert found.revision == "12"
    assert server.last.query == {}


async def test_list_can_leave_spec_and_status_out(server: ApiServer, cluster: KubeCluster) -> None:
    server.says(a_page("a"))
    await cluster.list(PODS, metadata_only=True)
    assert "as=PartialObjectMetadataList" in server.last.headers["Accept"]


async def test_watch_yields_events_and_bookmarks_until_the_server_ends_it(
    server: ApiServer, cluster: KubeCluster, calls: Calls
) -> None:
    events = [
        {"type": "ADDED", "object": a_pod("a", 6)},
        {"type": "BOOKMARK", "object": a_pod("", 8)},
    ]
    server.streams(*events)
    assert await seen(cluster) == events
    assert server.last.path == "/api/v1/namespaces/one/pods"
    assert server.last.query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "5",
        "timeoutSeconds": "7",
        "labelSelector": "app=a,b",
    }
    assert calls == [("watch", "pods", "200")]


async def test_events_arrive_whole_however_large_and_however_cut_up(
    server: ApiServer, cluster: KubeCluster
) -> None:
    large = {"type": "ADDED", "object": a_pod(spec={"note": "x" * 5 * 2**20})}
    small = b'{"type": "ADDED", "object": {}}\n'
    server.streams(large, small[:7], small[7:] + small)
    found = await seen(cluster)
    assert found[0] == large
    assert found[1:] == [{"type": "ADDED", "object": {}}] * 2


@pytest.mark.parametrize("tail", [b"", b'{"type": "ADD'])
async def test_a_cut_stream_is_transient_and_what_came_before_counts(
    server: ApiServer, cluster: KubeCluster, tail: bytes
) -> None:
    server.streams({"type": "ADDED", "object": a_pod()}, tail, then="cut")
    async with cluster.watch(PODS, None, "5") as events:
        assert (await anext(events))["object"] == a_pod()
        with pytest.raises(TransientError) as cut:
            await anext(events)
    assert cut.value.status is None


async def test_a_stream_that_ends_inside_an_event_is_transient(
    server: ApiServer, cluster: KubeCluster
) -> None:
    server.streams(b'{"type": "ADD')
    with pytest.raises(TransientError, match="middle of an event"):
        await seen(cluster)


async def test_a_silent_watch_is_given_up(server: ApiServer, cluster: KubeCluster) -> None:
    cluster.idle_seconds = 0.1
    server.streams({"type": "ADDED", "object": a_pod()}, then="silence")
    async with cluster.watch(PODS, None, "5") as events:
        assert (await anext(events))["type"] == "ADDED"
        with pytest.raises(TransientError, match="cannot be reached"):
            await anext(events)


async def test_a_forgotten_revision_is_gone_as_an_event_and_as_an_answer(
    server: ApiServer, cluster: KubeCluster
) -> None:
    server.streams({"type": "ERROR", "object": a_status(410, "Expired", "too old: 5")})
    with pytest.raises(errors.GoneError, match="too old: 5"):
        await seen(cluster)
    server.refuses(410, "Expired", "too old: 5")
    with pytest.raises(errors.GoneError, match="too old: 5"):
        await seen(cluster)


async def test_any_other_error_event_is_raised_by_its_code(
    server: ApiServer, cluster: KubeCluster
) -> None:
    server.streams({"type": "ERROR", "object": a_status(500, "InternalError", "etcd is away")})
    with pytest.raises(TransientError, match="etcd is away"):
        await seen(cluster)


async def test_what_comes_during_a_breath_comes_together(
    server: ApiServer, cluster: KubeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []
    rest = wire._rest

    async def noted(response: ClientResponse, seconds: float) -> None:
        rests.append(seconds)
        await rest(response, seconds)

    monkeypatch.setattr(wire, "_rest", noted)
    cluster.breaths = {PODS: 0.2}
    server.streams(*({"type": "ADDED", "object": a_pod(str(number))} for number in range(50)))
    found = [event["object"]["metadata"]["name"] for event in await seen(cluster)]
    assert found == [str(number) for number in range(50)]
    assert 1 <= len(rests) < 10, "fifty events are a few gulps"
    assert set(rests) == {0.2}


async def test_a_watch_can_be_left_in_the_middle(server: ApiServer, cluster: KubeCluster) -> None:
    server.streams({"type": "ADDED", "object": a_pod()}, then="silence")
    async with cluster.watch(PODS, None, "5") as events:
        async for _ in events:
            break
    server.says(a_pod())
    assert await cluster.get(PODS, "one", "a")


async def test_the_guard_stops_writes_but_neither_reads_nor_leases(
    server: ApiServer, cluster: KubeCluster
) -> None:
    def lost() -> None:
        raise LeadershipLostError("our lease ran out")

    cluster.guard = lost
    for write in (
        cluster.create(PODS, "one", a_pod()),
        cluster.replace(PODS, "one", a_pod()),
        cluster.replace_status(PODS, "one", a_pod()),
        cluster.merge(PODS, "one", "a", {}),
        cluster.delete(PODS, "one", "a"),
    ):
        with pytest.raises(LeadershipLostError):
            await write
    assert server.asked == []
    server.says(a_pod())
    server.says(a_pod())
    await cluster.get(PODS, "one", "a")
    await cluster.replace(LEASES, "one", a_pod())


async def test_a_lease_does_not_wait_in_line_and_who_waited_is_still_guarded(
    server: ApiServer, tmp_path: Path
) -> None:
    lost = asyncio.Event()

    def check() -> None:
        if lost.is_set():
            raise LeadershipLostError("our lease ran out")

    file = a_kubeconfig(tmp_path, server.url, {})
    cluster = KubeCluster(await configuration.load_configuration(file), requests_at_once=1)
    cluster.guard = check
    server.streams(then="silence")
    slow = asyncio.create_task(cluster.get(PODS, "one", "slow"))
    await server.arrived.wait()
    waiting = asyncio.create_task(cluster.delete(PODS, "one", "waiting"))
    server.says(a_pod())
    await cluster.replace(LEASES, "one", a_pod("lease"))
    lost.set()
    slow.cancel()
    with pytest.raises(LeadershipLostError):
        await waiting
    assert [asked.path.rsplit("/")[-1] for asked in server.asked] == ["slow", "lease"]
    await cluster.aclose()


async def test_a_token_file_is_read_again_after_a_while(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    file = a_kubeconfig(tmp_path, server.url, {"tokenFile": str(token)})
    async with open_cluster(file) as cluster:
        token.write_text("second\n")
        for life in (60.0, 0.0):
            monkeypatch.setattr(configuration, "_TOKEN_LIFE", life)
            server.says(a_pod())
            await cluster.get(PODS, "one", "a")
    assert [asked.headers["Authorization"] for asked in server.asked] == [
        "Bearer first",
        "Bearer second",
    ]


async def test_the_environment_names_the_kubeconfig(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", a_kubeconfig(tmp_path, server.url, {}))
    server.says({"major": "1", "minor": "36"})
    async with open_cluster(None) as cluster:
        assert await cluster.version() == (1, 36)


@pytest.mark.parametrize("file", ["missing", "broken"])
async def test_no_way_to_the_cluster_is_said_in_words(tmp_path: Path, file: str) -> None:
    (tmp_path / "broken").write_text("current-context: nowhere\ncontexts: []\n")
    with pytest.raises(ClusterError, match=r"kubeconfig|cannot be read"):
        await configuration.load_configuration(str(tmp_path / file))


async def test_a_pod_without_its_token_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    with pytest.raises(ClusterError, match="Service token file does not exist"):
        await configuration.load_configuration(None)


async def test_a_pod_reads_its_token_again_after_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("first")
    authority.write_text("a certificate")
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    clock = SimpleNamespace(datetime=SimpleNamespace(now=lambda: now[0]), timedelta=timedelta)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setattr(incluster_config, "datetime", clock)
    loaded = await configuration.load_configuration(None)
    assert loaded.host == "https://10.0.0.1:443"
    token.write_text("second")
    assert await configuration.authorization(loaded) == {"Authorization": "bearer first"}
    now[0] += timedelta(minutes=1)
    assert await configuration.authorization(loaded) == {"Authorization": "bearer second"}
    now[0] += timedelta(minutes=1)
    token.unlink()
    with pytest.raises(TransientError, match="our token cannot be read"):
        await configuration.authorization(loaded)


async def test_an_object_as_deep_as_the_api_server_takes_it_is_read_and_sent(
    cluster: KubeCluster, server: ApiServer
) -> None:
    """Anybody who may write in one namespace could end the watch of all otherwise."""
    deep = '{"a":' * DEEPEST + "1" + "}" * DEEPEST
    head = '{"type":"ADDED","object":{"metadata":{"resourceVersion":"7"},"spec":'
    server.streams(f"{head}{deep}}}}}\n".encode())
    (found,) = await seen(cluster)
    copied = copy.deepcopy(compact(found["object"]["spec"]))
    server.says("{}")
    await cluster.merge(SUPERVISORS, "one", "a", {"spec": copied})
    assert json.dumps(copied, separators=(",", ":")) == deep
