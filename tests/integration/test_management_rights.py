"""Every endpoint, for everybody: the admin, one who has a namespace, one who has nothing, nobody.

The rows are held against the routes that the application has: an endpoint without a row fails.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from supervisor_api.app import create_app
from tests.conftest import Tier
from tests.support.builders import AGENT, a_supervisor, a_team
from tests.support.kubectl import Kubectl
from tests.support.management import (
    Answer,
    ApiProcess,
    Caller,
    Json,
    allow_everything,
    allow_in_namespace,
    api_kubeconfig,
    bare_service,
    install_api,
    make_account,
    serving,
    until,
)
from tests.support.tokens import Admin

SUPERVISOR = "/api/v1/supervisors/{uid}"
TEAM = "/api/v1/teams/{team_uid}"
BY_NAME = "/api/v1/namespaces/{namespace}/supervisors/{name}"
TEAM_BY_NAME = "/api/v1/namespaces/{namespace}/teams/{team}"
MEMBER: Json = {"name": "late", "template": {"agent": AGENT}}


@dataclass(frozen=True, slots=True)
class Row:
    method: str
    path: str
    ok: int
    body: Any = None
    wide: str = ""
    """The same question about all namespaces: only for those who may ask it."""


def _both(name: str, method: str, path: str, ok: int = 200, body: Any = None) -> dict[str, Row]:
    """By UID, and by namespace and name."""
    named = path.replace(SUPERVISOR, BY_NAME).replace(TEAM, TEAM_BY_NAME)
    return {
        name: Row(method, path, ok, body),
        f"{name}_by_name": Row(method, named, ok, body),
    }


ROWS: dict[str, Row] = {
    "create_supervisor": Row(
        "POST",
        "/api/v1/supervisors",
        201,
        {"name": "{new}", "namespace": "{namespace}", "spec": {"agent": AGENT}},
    ),
    "list_supervisors": Row(
        "GET", "/api/v1/supervisors?namespace={namespace}", 200, wide="/api/v1/supervisors"
    ),
    **_both("get_supervisor", "GET", SUPERVISOR),
    **_both("change_supervisor", "PATCH", SUPERVISOR, body={"labels": {"a": "b"}}),
    **_both("delete_supervisor", "DELETE", SUPERVISOR, 204),
    **_both("get_health", "GET", f"{SUPERVISOR}/health"),
    **_both("get_beats", "GET", f"{SUPERVISOR}/beats"),
    **_both("get_story", "GET", f"{SUPERVISOR}/story"),
    **_both("get_yaml", "GET", f"{SUPERVISOR}/yaml"),
    **_both("get_teams", "GET", f"{SUPERVISOR}/teams"),
    **_both("start", "POST", f"{SUPERVISOR}/start"),
    **_both("stop", "POST", f"{SUPERVISOR}/stop"),
    **_both("pause", "POST", f"{SUPERVISOR}/pause"),
    **_both("resume", "POST", f"{SUPERVISOR}/resume"),
    **_both("restart", "POST", f"{SUPERVISOR}/restart"),
    "create_team": Row(
        "POST", "/api/v1/teams", 201, {"name": "{new}", "namespace": "{namespace}", "spec": {}}
    ),
    "list_teams": Row("GET", "/api/v1/teams?namespace={namespace}", 200, wide="/api/v1/teams"),
    **_both("get_team", "GET", TEAM),
    **_both("change_team", "PATCH", TEAM, body={"spec": {"objective": "win"}}),
    **_both("delete_team", "DELETE", TEAM, 204),
    **_both("get_members", "GET", f"{TEAM}/members"),
    **_both("add_member", "POST", f"{TEAM}/members", 201, MEMBER),
    **_both("remove_member", "DELETE", f"{TEAM}/members/first", 200),
    "get_snapshot": Row(
        "GET", "/api/v1/snapshot?namespace={namespace}", 200, wide="/api/v1/snapshot"
    ),
    "get_events": Row("GET", "/api/v1/events?namespace={namespace}", 200, wide="/api/v1/events"),
}


def operations() -> dict[str, tuple[str, str]]:
    """What the application itself answers, by the names in its document."""

    found = create_app(bare_service()).openapi()["paths"]
    return {
        operation["operationId"]: (method.upper(), path)
        for path, methods in found.items()
        for method, operation in methods.items()
    }


@dataclass(frozen=True, slots=True)
class Office:
    """The API, people who ask it, and a namespace for what they ask about."""

    api: ApiProcess
    kubectl: Kubectl
    tokens: dict[str, str | None]

    def caller(self, who: str) -> Caller:
        return Caller(self.api.port, self.tokens[who])


@pytest.fixture(scope="module")
def office(control_tier: Tier, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    cluster = control_tier.cluster()
    install_api(cluster)
    kubectl = Kubectl(cluster, f"test-{uuid.uuid4().hex[:8]}")
    kubectl("create", "namespace", kubectl.namespace)
    names = ("admin", "local", "none")
    tokens: dict[str, str | None] = {name: make_account(kubectl, name) for name in names}
    allow_everything(kubectl, "admin")
    allow_in_namespace(kubectl, "local")
    folder = tmp_path_factory.mktemp("api")
    with serving(api_kubeconfig(cluster, folder), folder, "--requests-per-second=1000") as api:
        yield Office(api, kubectl, tokens | {"nobody": None, "forger": "not.a.token"})
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
    kubectl("delete", "clusterrolebinding", f"{kubectl.namespace}-admin")


@pytest.fixture(scope="module")
def admin(office: Office) -> Iterator[Admin]:
    with Admin(office.kubectl) as found:
        yield found


@pytest.fixture
def objects(office: Office, admin: Admin) -> dict[str, str]:
    """A Supervisor and a team of this test's own, by the words of the rows."""
    return make_objects(office, admin)


@pytest.fixture(scope="module")
def standing(office: Office, admin: Admin) -> dict[str, str]:
    """The same for those who may do nothing to them."""
    return make_objects(office, admin)


def make_objects(office: Office, admin: Admin) -> dict[str, str]:
    namespace, number = office.kubectl.namespace, uuid.uuid4().hex[:8]
    group = f"/apis/supervision.dev/v1alpha1/namespaces/{namespace}"
    made = admin.ask("POST", f"{group}/supervisors", a_supervisor(f"s-{number}"))
    assert made.status == 201, made.message
    member = {"name": "first", "template": {"agent": AGENT}}
    team = admin.ask("POST", f"{group}/supervisorteams", a_team(f"t-{number}", members=[member]))
    assert team.status == 201, team.message
    words = {
        "namespace": namespace,
        "name": f"s-{number}",
        "uid": made.body["metadata"]["uid"],
        "team": f"t-{number}",
        "team_uid": team.body["metadata"]["uid"],
        "new": f"n-{number}",
    }
    boss = office.caller("admin")
    for path in (SUPERVISOR, TEAM):
        until(partial(_is_known, boss, path.format(**words)))
    return words


def _is_known(caller: Caller, path: str) -> bool:
    return caller.get(path).status == 200


def fill(found: Any, words: dict[str, str]) -> Any:
    if isinstance(found, str):
        return found.format(**words)
    if isinstance(found, dict):
        return {key: fill(value, words) for key, value in found.items()}
    return found


def call(office: Office, who: str, row: Row, words: dict[str, str], path: str = "") -> Answer:
    address = (path or row.path).format(**words)
    caller = office.caller(who)
    if "/events" in address and who in {"admin", "local"}:
        with caller.stream(address) as stream:
            first = stream.next()
            assert first is not None
            assert first["event"] == "ready"
            return Answer(200, {}, b"")
    return caller.ask(row.method, address, fill(row.body, words))


def test_every_endpoint_has_a_row_and_every_row_an_endpoint() -> None:
    found = operations()
    assert set(found) == set(ROWS)
    for name, row in ROWS.items():
        assert found[name][0] == row.method


@pytest.mark.parametrize("name", list(ROWS))
@pytest.mark.parametrize("who", ["admin", "local"])
def test_those_who_may_are_answered(
    office: Office, objects: dict[str, str], who: str, name: str
) -> None:
    answer = call(office, who, ROWS[name], objects)
    assert answer.status == ROWS[name].ok, answer.body
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("name", list(ROWS))
def test_those_who_may_not_are_refused_in_the_api_servers_words(
    office: Office, standing: dict[str, str], name: str
) -> None:
    row = ROWS[name]
    answer = call(office, "none", row, standing)
    assert answer.status == 403, answer.body
    assert answer.headers["content-type"] == "application/problem+json"
    account = f"system:serviceaccount:{office.kubectl.namespace}:none"
    assert f'User "{account}" cannot' in answer.json["detail"]
    assert answer.json["fix"]


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.wide])
def test_a_right_in_one_namespace_is_none_in_all(
    office: Office, standing: dict[str, str], name: str
) -> None:
    row = ROWS[name]
    assert call(office, "admin", row, standing, row.wide).status == 200
    refused = office.caller("local").get(row.wide)
    assert refused.status == 403
    assert "at the cluster scope" in refused.json["detail"]
    elsewhere = office.caller("local").get(f"{row.wide}?namespace=kube-system")
    assert elsewhere.status == 403


@pytest.mark.parametrize("name", list(ROWS))
@pytest.mark.parametrize("who", ["nobody", "forger"])
def test_without_a_good_token_nobody_is_answered(
    office: Office, standing: dict[str, str], who: str, name: str
) -> None:
    answer = call(office, who, ROWS[name], standing)
    assert answer.status == 401, answer.body
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("kind", ["supervisors", "teams"])
def test_an_unknown_id_is_found_by_nobody(office: Office, kind: str) -> None:
    path = f"/api/v1/{kind}/{uuid.uuid4()}"
    for who, status in (("admin", 404), ("none", 404), ("forger", 401), ("nobody", 401)):
        assert office.caller(who).get(path).status == status
