"""Objects of nonsense that the schema admits: no crash, no loop, and each says what it came to."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from supervisor_operator.api.v1alpha1.supervisor import SupervisorSpec
from supervisor_operator.api.v1alpha1.team import TeamSpec
from supervisor_operator.crdgen.schema import structural_schema
from tests.support.behind_proxy import Troubled, behind_proxy
from tests.support.builders import a_supervisor, an_object
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess
from tests.support.random_specs import Nonsense
from tests.support.tokens import Admin
from tests.support.walk.snapshot import CUSTOM, View, condition, is_looked_at, look

TEAMS_AMONG = 10
MOST_WRITES = 15
"""Of one object: statuses, pods, Heartbeats, members and Events of a start that may fail."""
STILL_SECONDS = 6.0
SEED = 2026
DEPTH = 3000


@pytest.fixture
def troubled(fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path) -> Iterator[Troubled]:
    with behind_proxy(fake_kubectl, operator_access, tmp_path, "--resync-seconds=5") as found:
        yield found


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "count", [300, pytest.param(2000, marks=pytest.mark.soak)], ids=["300", "2000"]
)
def test_nonsense_that_the_schema_admits(
    troubled: Troubled, fake_kubectl: Kubectl, count: int
) -> None:
    with Admin(fake_kubectl) as admin:
        answers = make(admin, fake_kubectl.namespace, count)
        view = until_all_speak(troubled, admin, fake_kubectl.namespace)
        known = len(troubled.proxy.writes)
        until_still(troubled)
    items = [*view.supervisors.values(), *view.teams.values()]
    reasons = Counter(condition(item, "Ready")["reason"] for item in items)
    writes = busiest(troubled)
    print(f"{answers}; {dict(reasons)}; {known} writes, the most for one object {writes[:3]}")
    assert answers[HTTPStatus.CREATED] > count / 2
    assert set(answers) <= {HTTPStatus.CREATED, HTTPStatus.UNPROCESSABLE_ENTITY}
    assert len(reasons) > 5, "nonsense of many kinds"
    assert writes[0][1] <= MOST_WRITES, writes[:5]
    assert known / len(items) <= MOST_WRITES
    assert "Traceback" not in troubled.operator.log


def test_an_object_as_deep_as_the_api_server_takes_it_stops_nobody(
    fake_kubectl: Kubectl, operator: OperatorProcess
) -> None:
    """Python reads JSON a tenth as deep: one object of one namespace ended the watch of all."""
    kubectl, nest = fake_kubectl, '{"a":' * DEPTH + "1" + "}" * DEPTH
    item = a_supervisor("deep", config={"nest": "here"}, heartbeat={"source": "None"})
    kubectl("create", "-f", "-", stdin=json.dumps(item).replace('"here"', nest))
    kubectl.create(a_supervisor("plain", heartbeat={"source": "None"}))
    for name in ("plain", "deep"):
        kubectl.wait(f"sup/{name}", "jsonpath={.status.phase}=ACTIVE")
    assert "Traceback" not in operator.log


def make(admin: Admin, namespace: str, count: int) -> Counter[int]:
    kinds = {"supervisors": "Supervisor", "supervisorteams": "SupervisorTeam"}
    schemas = {
        "supervisors": structural_schema(SupervisorSpec),
        "supervisorteams": structural_schema(TeamSpec),
    }
    nonsense = Nonsense(SEED)
    answers: Counter[int] = Counter()
    for number in range(count):
        plural = "supervisorteams" if number % TEAMS_AMONG == 0 else "supervisors"
        item = an_object(kinds[plural], f"zz{number:04}", nonsense.spec(schemas[plural]))
        path = f"{CUSTOM}/namespaces/{namespace}/{plural}"
        answers[admin.ask("POST", path, item).status] += 1
    return answers


def until_all_speak(troubled: Troubled, admin: Admin, namespace: str) -> View:
    """Until each has a Ready condition with a reason, computed from what it is now."""
    found: list[View] = []

    def all_speak() -> bool:
        view = look(admin, namespace)
        found.append(view)
        items = [*view.supervisors.values(), *view.teams.values()]
        return all(is_looked_at(one) and condition(one, "Ready").get("reason") for one in items)

    troubled.operator.until(all_speak, 300)
    return found[-1]


def until_still(troubled: Troubled) -> None:
    """No write for longer than a resync and a roll-up take; those that go on for ever fail."""
    last, since = -1, time.monotonic()
    deadline = since + 120
    while time.monotonic() - since < STILL_SECONDS:
        if len(troubled.proxy.writes) != last:
            last, since = len(troubled.proxy.writes), time.monotonic()
        assert time.monotonic() < deadline, [write.path for write in troubled.proxy.writes[-5:]]
        time.sleep(0.2)


def busiest(troubled: Troubled) -> list[tuple[str, int]]:
    """Writes to objects by name, Events left out."""
    named: Counter[Any] = Counter(
        write.path.partition("/namespaces/")[2].split("/")[2]
        for write in troubled.proxy.writes
        if "/events" not in write.path and write.path.count("/zz")
    )
    return [(str(name), times) for name, times in named.most_common()]
