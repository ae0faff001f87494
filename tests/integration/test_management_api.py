"""What the management API does, on a real API server: reads, writes, limits, stream."""

from __future__ import annotations

import http.client
import json
import ssl
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from supervisor_operator.core.states import State
from tests.cluster.certificates import Authority
from tests.conftest import Tier
from tests.support.builders import AGENT, a_supervisor
from tests.support.health_stories import STORIES, told
from tests.support.install import MANIFESTS, NAMESPACE
from tests.support.kubectl import Kubectl
from tests.support.management import (
    Caller,
    Json,
    allow_everything,
    allow_in_namespace,
    api_kubeconfig,
    install_api,
    make_account,
    serving,
    token_of,
    until,
)

SPEC: Json = {"agent": AGENT}
DEPTH = 3000
WIDE = ("supervisors", "teams", "snapshot", "events")


class Desk:
    """Somebody with all rights in one namespace, and the API in front of them."""

    def __init__(self, kubectl: Kubectl, caller: Caller) -> None:
        self.kubectl = kubectl
        self.caller = caller
        self.here = f"/api/v1/namespaces/{kubectl.namespace}"
        self.query = f"namespace={kubectl.namespace}"

    def make(self, name: str, kind: str = "supervisors", **fields: object) -> Json:
        body = {"name": name, "namespace": self.kubectl.namespace, "spec": SPEC} | fields
        made = self.caller.ask("POST", f"/api/v1/{kind}", body)
        assert made.status == 201, made.body
        found: Json = made.json
        return found


@pytest.fixture(scope="module")
def access(control_tier: Tier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    cluster = control_tier.cluster()
    install_api(cluster)
    return api_kubeconfig(cluster, tmp_path_factory.mktemp("access"))


@pytest.fixture(scope="module")
def port(access: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with serving(access, tmp_path_factory.mktemp("api"), "--stream-seconds=0.3") as api:
        yield api.port


@pytest.fixture
def desk(kubectl: Kubectl, port: int) -> Desk:
    token = make_account(kubectl, "clerk")
    allow_in_namespace(kubectl, "clerk")
    return Desk(kubectl, Caller(port, token))


def test_what_was_made_is_there_at_once_under_both_its_names(desk: Desk) -> None:
    body = {"name": "hello", "namespace": desk.kubectl.namespace, "labels": {"a": "b"}}
    made = desk.caller.ask("POST", "/api/v1/supervisors", body | {"spec": SPEC})
    assert made.status == 201
    where = made.headers["location"]
    assert where == f"/api/v1/supervisors/{made.json['id']}"
    by_uid, by_name = desk.caller.get(where), desk.caller.get(f"{desk.here}/supervisors/hello")
    assert by_uid.json == by_name.json == made.json
    assert made.json["labels"] == {"a": "b"}
    again = desk.caller.ask("POST", "/api/v1/supervisors", body | {"spec": SPEC})
    assert (again.status, again.json["reason"]) == (409, "AlreadyExists")


@pytest.mark.parametrize(
    ("spec", "field", "fix"),
    [
        ({"agent": AGENT, "operatingMode": "Pause"}, "operatingMode", "'Running'"),
        ({"agent": {}}, "spec.agent", "set exactly one of image"),
        ({"agent": AGENT, "restrat": {}}, "restrat", "unknown field"),
    ],
)
def test_a_wrong_field_is_named_with_its_fix(desk: Desk, spec: Json, field: str, fix: str) -> None:
    body = {"name": "bad", "namespace": desk.kubectl.namespace, "spec": spec}
    answer = desk.caller.ask("POST", "/api/v1/supervisors", body)
    assert answer.status == 422
    assert field in answer.body.decode()
    assert fix in json.dumps(answer.json, ensure_ascii=False)


def test_pages_and_filters(desk: Desk) -> None:
    for number in range(5):
        desk.make(f"agent-{number}", labels={"odd": str(number % 2)})
    names: list[str] = []
    following = ""
    while True:
        more = f"&continue={following}" if following else ""
        page = desk.caller.get(f"/api/v1/supervisors?{desk.query}&limit=2{more}").json
        assert page["total"] == 5
        names += [one["name"] for one in page["items"]]
        following = page.get("continue", "")
        if not following:
            break
    assert names == [f"agent-{number}" for number in range(5)]
    odd = desk.caller.get(f"/api/v1/supervisors?{desk.query}&labelSelector=odd%3D1").json
    assert [one["name"] for one in odd["items"]] == ["agent-1", "agent-3"]
    unknown = desk.caller.get(f"/api/v1/supervisors?{desk.query}&level=UNKNOWN").json
    assert unknown["total"] == 5
    assert desk.caller.get(f"/api/v1/supervisors?{desk.query}&phase=FAILED").json["total"] == 0
    assert desk.caller.get(f"/api/v1/supervisors?{desk.query}&phase=ASLEEP").status == 422


def test_health_is_the_golden_answer_of_the_state(desk: Desk) -> None:
    desk.make("hello", spec=SPEC | {"heartbeat": {"source": "None"}})
    status = told(STORIES[State.FAILED]()).item["status"] | {"observedGeneration": 1}
    patch = json.dumps({"status": status})
    desk.kubectl("patch", "sup", "hello", "--subresource=status", "--type=merge", "-p", patch)
    address = f"{desk.here}/supervisors/hello/health"
    until(lambda: desk.caller.get(address).json["level"] == "UNHEALTHY")
    found = desk.caller.get(address).json
    assert found["reason"] == "RestartBudgetExhausted"
    assert found["nextStep"].startswith("Read its last words")
    assert found["commands"][0] == f"kubectl -n {desk.kubectl.namespace} logs hello-r1 --tail=50"


def test_a_change_of_what_somebody_else_changed_is_a_conflict(desk: Desk) -> None:
    made = desk.make("hello")
    address = f"/api/v1/supervisors/{made['id']}"
    first = desk.caller.ask("PATCH", address, {"spec": {"description": "one"}})
    assert (first.status, first.json["spec"]["description"]) == (200, "one")
    stale = {"spec": {"description": "two"}, "resourceVersion": made["resourceVersion"]}
    answer = desk.caller.ask("PATCH", address, stale)
    assert (answer.status, answer.json["reason"]) == (409, "Conflict")
    typo = desk.caller.ask("PATCH", address, {"spec": {"descripton": "three"}})
    assert (typo.status, "descripton" in typo.json["detail"]) == (422, True)


def test_an_id_never_means_the_next_object_of_the_same_name(desk: Desk) -> None:
    made = desk.make("hello")
    desk.kubectl("delete", "sup", "hello")
    desk.kubectl.create(a_supervisor("hello"))
    address = f"/api/v1/supervisors/{made['id']}"
    for method, path in (("POST", f"{address}/stop"), ("DELETE", address)):
        assert desk.caller.ask(method, path).status in {404, 409}
    assert desk.kubectl.get("sup", "hello")["spec"]["operatingMode"] == "Running"


@pytest.mark.parametrize(
    ("order", "body", "field", "value"),
    [
        ("pause", None, "operatingMode", "Paused"),
        ("resume", None, "operatingMode", "Running"),
        ("stop", None, "operatingMode", "Stopped"),
        ("start", None, "operatingMode", "Running"),
        ("restart", None, "restartRequest", "restart of run 3"),
        ("restart", {"request": "2026-11-18 fixed"}, "restartRequest", "2026-11-18 fixed"),
    ],
)
def test_an_order_given_twice_is_written_once(
    desk: Desk, order: str, body: Json | None, field: str, value: str
) -> None:
    address = f"/api/v1/supervisors/{desk.make('hello')['id']}"
    patch = json.dumps({"status": {"run": 3}})
    desk.kubectl("patch", "sup", "hello", "--subresource=status", "--type=merge", "-p", patch)
    if value == "Running":
        desk.caller.ask("POST", f"{address}/stop")
    before = desk.kubectl.get("sup", "hello")["metadata"]["resourceVersion"]
    first, second = (desk.caller.ask("POST", f"{address}/{order}", body).json for _ in range(2))
    assert first["spec"][field] == value
    assert before != first["resourceVersion"] == second["resourceVersion"]


def test_members_come_and_go_and_nobody_is_lost_when_many_come_at_once(desk: Desk) -> None:
    team = desk.make("crew", "teams", spec={"objective": "win"})
    address = f"/api/v1/teams/{team['id']}/members"
    entries = [{"name": f"m-{number}", "template": SPEC} for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda one: desk.caller.ask("POST", address, one), entries))
    assert [one.status for one in answers] == [201] * 4, [one.body for one in answers]
    members = desk.kubectl.get("supteam", "crew")["spec"]["members"]
    assert {one["name"] for one in members} == {one["name"] for one in entries}
    assert desk.caller.ask("POST", address, entries[0]).status == 409
    assert desk.caller.ask("DELETE", f"{address}/m-2").status == 200
    assert desk.caller.ask("DELETE", f"{address}/m-2").status == 404
    stays = [
        {"name": "a", "role": "LEAD", "supervisor": "crew-a", "joinedAt": "2026-01-01T00:00:00Z"},
        {
            "name": "b",
            "role": "MEMBER",
            "supervisor": "crew-b",
            "joinedAt": "2026-01-01T00:00:00Z",
            "leftAt": "2026-01-02T00:00:00Z",
        },
    ]
    patch = json.dumps({"status": {"observedGeneration": 1, "members": stays}})
    desk.kubectl("patch", "supteam", "crew", "--subresource=status", "--type=merge", "-p", patch)
    until(lambda: bool(desk.caller.get(address).json["left"]))
    found = desk.caller.get(address).json
    assert found == {"members": stays[:1], "left": stays[1:]}


def test_snapshot_then_stream_misses_nothing(desk: Desk) -> None:
    desk.make("before")
    first = desk.caller.get(f"/api/v1/snapshot?{desk.query}")
    assert [one["name"] for one in first.json["supervisors"]] == ["before"]
    desk.make("between")
    with desk.caller.stream(f"/api/v1/events?{desk.query}", first.json["eventId"]) as stream:
        added = stream.until("SupervisorAdded")
        assert added["data"]["supervisor"]["name"] == "between"
        desk.kubectl("delete", "sup", "before")
        gone = stream.until("SupervisorRemoved")
    assert gone["data"]["supervisor"]["name"] == "before"
    desk.make("after")
    with desk.caller.stream(f"/api/v1/events?{desk.query}", gone["id"]) as stream:
        assert stream.until("SupervisorAdded")["data"]["supervisor"]["name"] == "after"
    with desk.caller.stream(f"/api/v1/events?{desk.query}", "another-1") as stream:
        assert stream.until("gap")["data"]["version"] > 0
        assert stream.next() is None, "who has a gap is dropped"


def test_a_snapshot_that_is_known_is_not_sent_again(desk: Desk) -> None:
    path = f"/api/v1/snapshot?{desk.query}"
    desk.make("hello")

    def is_known() -> bool:
        """Nobody else's test may change anything in between: then it is asked again."""
        tag = desk.caller.get(path).headers["etag"]
        return desk.caller.get(path, **{"If-None-Match": tag}).status == 304

    until(is_known)
    assert desk.caller.get(path, **{"If-None-Match": '"old"'}).status == 200


def test_a_stream_ends_with_the_right_to_it_or_with_the_token(desk: Desk) -> None:
    token = make_account(desk.kubectl, "revoked")
    allow_in_namespace(desk.kubectl, "revoked")
    other, path = Caller(desk.caller.port, token), f"/api/v1/events?{desk.query}"
    with desk.caller.stream(path) as one, other.stream(path) as another:
        for stream in (one, another):
            stream.until("ready")
        desk.kubectl("delete", "rolebinding", "clerk")
        desk.kubectl("delete", "serviceaccount", "revoked")
        for stream in (one, another):
            assert stream.next() is None, "the API server's answer is remembered for 5 s only"


@pytest.mark.parametrize("what", ["namespace=No%20Name", "namespace=a/../b", "namespace="])
def test_a_stream_of_nonsense_is_refused(desk: Desk, what: str) -> None:
    answer = desk.caller.get(f"/api/v1/events?{what}")
    assert (answer.status, answer.json["errors"][0]["field"]) == (422, "query.namespace")
    long = desk.caller.get(f"/api/v1/events?{desk.query}", **{"Last-Event-ID": "x" * 300})
    assert (long.status, long.json["errors"][0]["field"]) == (422, "header.last-event-id")


def test_headers_and_limits(kubectl: Kubectl, access: Path, tmp_path: Path) -> None:
    token = make_account(kubectl, "clerk")
    allow_in_namespace(kubectl, "clerk")
    flags = ("--requests-per-second=0.5", "--burst=4", "--max-body-bytes=1000", "--max-streams=0")
    with serving(access, tmp_path, *flags) as api:
        caller = Caller(api.port, token)
        path = f"/api/v1/snapshot?namespace={kubectl.namespace}"
        answer = caller.get(path)
        assert answer.status == 200
        for name, value in (
            ("x-content-type-options", "nosniff"),
            ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
            ("cache-control", "private, no-cache"),
        ):
            assert answer.headers[name] == value
        assert "set-cookie" not in answer.headers
        assert "server" not in answer.headers
        chunked = iter([b'{"name":"', *[b"x" * 500] * 4, b'"}'])
        for body in (b"x" * 2000, chunked):
            kind = {"Content-Type": "application/json"}
            long = caller.ask("POST", "/api/v1/supervisors", body, kind)
            assert (long.status, long.json["detail"]) == (413, "the body is longer than 1000 bytes")
        full = caller.get(f"/api/v1/events?namespace={kubectl.namespace}")
        assert (full.status, full.headers["retry-after"]) == (503, "30")
        until(lambda: caller.get(path).status == 429)
        assert int(caller.get(path).headers["retry-after"]) >= 1


def test_an_api_for_one_namespace_knows_no_other(
    kubectl: Kubectl, access: Path, tmp_path: Path
) -> None:
    """What is written elsewhere is written, and leaves nothing behind that would never go."""
    token = make_account(kubectl, "boss")
    allow_everything(kubectl, "boss")
    with serving(access, tmp_path, f"--namespace={kubectl.namespace}") as api:
        caller = Caller(api.port, token)
        for namespace in ("default", kubectl.namespace):
            body = {"name": kubectl.namespace, "namespace": namespace, "spec": SPEC}
            assert caller.ask("POST", "/api/v1/supervisors", body).status == 201
        everything = caller.get("/api/v1/supervisors").json
        elsewhere = [caller.get(f"/api/v1/{what}?namespace=default") for what in WIDE]
    kubectl("delete", "sup", kubectl.namespace, "--namespace=default")
    kubectl("delete", "clusterrolebinding", f"{kubectl.namespace}-boss")
    assert [one["namespace"] for one in everything["items"]] == [kubectl.namespace]
    assert [one.status for one in elsewhere] == [422] * len(WIDE)
    assert "started for other namespaces" in elsewhere[0].json["fix"]


def test_it_speaks_https(kubectl: Kubectl, access: Path, tmp_path: Path) -> None:
    token = make_account(kubectl, "clerk")
    allow_in_namespace(kubectl, "clerk")
    authority = Authority(tmp_path / "pki")
    pair = authority.issue("server", "supervisor-api", sans=["127.0.0.1"])
    flags = (f"--tls-cert={pair.certificate}", f"--tls-key={pair.key}")
    trust = ssl.create_default_context(cafile=str(authority.ca))
    with serving(access, tmp_path, *flags, trust=trust) as api:
        caller = Caller(api.port, token, trust)
        assert caller.get(f"/api/v1/snapshot?namespace={kubectl.namespace}").status == 200
        with pytest.raises((ConnectionError, http.client.BadStatusLine)):
            Caller(api.port, token).get("/healthz")


def test_our_own_certificate_lends_nobody_its_rights(kubectl: Kubectl, tmp_path: Path) -> None:
    """Outside a cluster it may run with an admin's certificate, which would win over any token."""
    token = make_account(kubectl, "nobody")
    with serving(Path(kubectl.cluster.kubeconfig), tmp_path) as api:
        refused = Caller(api.port, token).get("/api/v1/supervisors")
        body = {"name": "x", "namespace": kubectl.namespace, "spec": SPEC}
        made = Caller(api.port, token).ask("POST", "/api/v1/supervisors", body)
    assert (refused.status, made.status) == (403, 403)
    assert kubectl.names("sup") == []


def test_it_ends_at_once_with_streams_open(kubectl: Kubectl, access: Path, tmp_path: Path) -> None:
    make_account(kubectl, "clerk")
    allow_in_namespace(kubectl, "clerk")
    with serving(access, tmp_path) as api:
        caller = Caller(api.port, token_of(kubectl, "clerk"))
        with caller.stream(f"/api/v1/events?namespace={kubectl.namespace}") as stream:
            stream.until("ready")
            assert api.stop() == 0
            assert stream.next() is None
    assert "Traceback" not in api.log


def test_an_unknown_address_is_a_problem_too(port: int) -> None:
    for method, path, status in (
        ("GET", f"/{uuid.uuid4()}", 404),
        ("PUT", "/api/v1/supervisors", 405),
    ):
        answer = Caller(port).ask(method, path)
        assert answer.status == status
        assert answer.headers["content-type"] == "application/problem+json"


def test_an_object_nested_without_end_hides_no_other(desk: Desk) -> None:
    """Python's own limit for JSON is far below the API server's."""
    deep = "x"
    item = json.dumps(a_supervisor("deep", config={"deep": deep}))
    text = item.replace(json.dumps(deep), '{"a":' * DEPTH + "1" + "}" * DEPTH)
    desk.kubectl("create", "-f", "-", stdin=text)
    page = f"/api/v1/supervisors?{desk.query}"
    until(lambda: desk.caller.get(page).body.startswith(b'{"total":1,'))
    desk.make("after")
    body = (b'{"spec":{"config":' + b'{"a":' * DEPTH + b"1" + b"}" * DEPTH) + b"}}"
    kind = {"Content-Type": "application/json"}
    changed = desk.caller.ask("PATCH", f"{desk.here}/supervisors/after", body, kind)
    assert changed.status == 200, changed.body[:200]
    assert desk.caller.ask("DELETE", f"{desk.here}/supervisors/deep").status == 204


def test_its_manifests_are_accepted(access: Path, kubectl: Kubectl) -> None:
    assert access.exists(), "the namespace is there"
    there = Kubectl(kubectl.cluster, NAMESPACE)
    said = there("apply", "--dry-run=server", "-k", str(MANIFESTS / "api"))
    assert "deployment.apps/supervisor-api" in said.out
    assert "would violate" not in said.err, "its namespace enforces PSS restricted"
