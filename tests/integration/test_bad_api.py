"""An API server that is unwell, rights and quotas that go and come back: nobody healthy suffers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.api_call import Call
from tests.support.behind_proxy import Troubled, behind_proxy
from tests.support.builders import a_supervisor
from tests.support.fleet import Fleet
from tests.support.install import MANIFESTS, NAMESPACE
from tests.support.kubectl import Kubectl

NONE = {"source": "None"}
BEATS = {"intervalSeconds": 5}
QUICK = {"delaySeconds": 1, "maxDelaySeconds": 1}
RATE = 0.3
HEALED_SECONDS = 60.0
GROUP = 5
WATCHES = ("supervisors", "supervisorteams", "pods", "heartbeats")
Json = dict[str, Any]


@pytest.fixture
def troubled(fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path) -> Iterator[Troubled]:
    with behind_proxy(fake_kubectl, operator_access, tmp_path, "--resync-seconds=1") as found:
        yield found


def make(kubectl: Kubectl, *items: Json) -> None:
    stdin = {"apiVersion": "v1", "kind": "List", "items": list(items)}
    kubectl("create", "-f", "-", stdin=stdin)


def statuses(kubectl: Kubectl) -> dict[str, Json]:
    items = kubectl("get", "sup", "-o", "json").json["items"]
    return {item["metadata"]["name"]: item.get("status", {}) for item in items}


def is_ready(status: Json) -> bool:
    conditions = status.get("conditions") or ()
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)


def uids(kubectl: Kubectl) -> dict[str, str]:
    items = kubectl("get", "pods", "-o", "json").json["items"]
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("agents", "seconds"), [(50, 25.0), pytest.param(200, 300.0, marks=pytest.mark.soak)]
)
def test_a_third_of_all_requests_fails(
    troubled: Troubled, fake_kubectl: Kubectl, agents: int, seconds: float
) -> None:
    """Some agents beat on, some crash meanwhile, some are edited, some are new."""
    kubectl, proxy, operator = fake_kubectl, troubled.proxy, troubled.operator
    names = [f"a{number}" for number in range(agents)]
    well, crash, edit = names[2 * GROUP :], names[:GROUP], names[GROUP : 2 * GROUP]
    make(
        kubectl,
        *(a_supervisor(name, heartbeat=BEATS) for name in well),
        *(a_supervisor(name, heartbeat=NONE, restart=QUICK) for name in crash + edit),
    )
    kubectl("wait", "sup", "--all", "--for=jsonpath={.status.startTime}", "--timeout=60s")
    with Fleet(kubectl, 1.0) as fleet:
        fleet.join(*(f"{name}-r1" for name in well))
        kubectl("wait", "sup", "--all", "--for=condition=Ready", "--timeout=60s")
        before = uids(kubectl)
        unrest = proxy.be_unwell(RATE, seed=9)
        end = time.monotonic() + seconds
        kubectl("label", "pod", *(f"{name}-r1" for name in crash), "fake.test/exit-code=3")
        for name in edit:
            kubectl.patch(name, {"agent": {"image": "localhost/agent:2"}})
        make(kubectl, *(a_supervisor(f"new{number}", heartbeat=NONE) for number in range(GROUP)))
        while time.monotonic() < end:
            proxy.cut_watches(WATCHES[int(time.monotonic()) % len(WATCHES)])
            time.sleep(2)
        unrest.rate = 0.0
        healed = time.monotonic() + HEALED_SECONDS
        operator.until(lambda: all(map(is_ready, statuses(kubectl).values())), HEALED_SECONDS)
        operator.until(lambda: runs(kubectl, crash + edit) == {2}, healed - time.monotonic())
        found, after = statuses(kubectl), uids(kubectl)
    print(f"{unrest.failed} of {unrest.fates.total()} requests failed: {dict(unrest.fates)}")
    assert unrest.failed > agents
    assert {(found[name]["run"], found[name]["restarts"]) for name in well} == {(1, 0)}
    assert {name: before[name] for name in (f"{one}-r1" for one in well)}.items() <= after.items()
    assert {found[name]["restartsCounted"] for name in crash} == {1}
    assert {found[f"new{number}"]["run"] for number in range(GROUP)} == {1}
    assert "Traceback" not in operator.log


def runs(kubectl: Kubectl, names: list[str]) -> set[int]:
    found = statuses(kubectl)
    return {found[name]["run"] for name in names}


def test_too_many_requests_are_answered_with_patience(
    troubled: Troubled, fake_kubectl: Kubectl
) -> None:
    asked: list[float] = []

    def creates_a_pod(call: Call) -> bool:
        is_it = (call.verb, call.plural) == ("create", "pods")
        if is_it:
            asked.append(time.monotonic())
        return is_it

    refusal = troubled.proxy.refuse(creates_a_pod, 429, "too many", times=None, retry_after=3)
    make(fake_kubectl, a_supervisor(heartbeat=NONE))
    troubled.operator.until(lambda: len(asked) >= 2)
    assert asked[1] - asked[0] > 2.9, "Retry-After was 3 s"
    refusal.times = 0
    fake_kubectl.wait_status("hello", phase="ACTIVE")


def test_an_answer_that_was_lost_is_not_an_order_to_do_it_twice(
    troubled: Troubled, fake_kubectl: Kubectl
) -> None:
    def writes(call: Call) -> bool:
        return call.is_write and call.plural in {"pods", "heartbeats", "supervisors"}

    lost = troubled.proxy.lose_answers(writes, times=6)
    make(fake_kubectl, a_supervisor(heartbeat=NONE), a_supervisor("beats"))
    fake_kubectl.wait_status("hello", phase="ACTIVE")
    fake_kubectl.wait_status("beats", podName="beats-r1")
    fake_kubectl.wait("hb/beats-r1", "create")
    troubled.operator.until(lambda: lost.lost == 6)
    assert (troubled.creates("pods"), troubled.creates("heartbeats")) == (2, 1)
    assert fake_kubectl.names("pods") == ["beats-r1", "hello-r1"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_rights_that_are_revoked_and_given_back(
    troubled: Troubled, fake_kubectl: Kubectl, *, long: bool
) -> None:
    kubectl, proxy, operator = fake_kubectl, troubled.proxy, troubled.operator
    make(kubectl, a_supervisor("well", heartbeat=NONE), a_supervisor(heartbeat=NONE, restart=QUICK))
    kubectl("wait", "sup", "--all", "--for=condition=Ready", "--timeout=30s")
    before = uids(kubectl)["well-r1"]
    with revoked(kubectl):
        proxy.cut_watches()
        kubectl("label", "pod", "hello-r1", "fake.test/exit-code=3")
        if long:
            assert operator.wait_end(120) == 1, "kopf gives up after about a minute"
            assert "the custom objects cannot be watched" in operator.log
            assert "Traceback" not in operator.log
            operator.start().until(lambda: "Apply the operator's RBAC rules" in operator.log)
        else:
            operator.until(lambda: 'cannot watch resource "pods"' in operator.log)
        assert operator.alive
    given_back = time.monotonic()
    operator.until(lambda: statuses(kubectl)["hello"]["podName"] == "hello-r2", HEALED_SECONDS)
    assert time.monotonic() - given_back < HEALED_SECONDS
    kubectl.wait_status("hello", phase="ACTIVE")
    assert uids(kubectl)["well-r1"] == before


@contextmanager
def revoked(kubectl: Kubectl) -> Iterator[None]:
    """For a while the operator may do nothing to the objects of any namespace."""
    kubectl("delete", "clusterrolebinding", "supervisor-operator")
    try:
        yield
    finally:
        there = Kubectl(kubectl.cluster, NAMESPACE)
        there("apply", "--server-side", "--force-conflicts", "-k", str(MANIFESTS / "rbac"))


def test_a_full_quota_does_not_stand_in_the_way_of_a_new_template(
    troubled: Troubled, fake_kubectl: Kubectl
) -> None:
    """The old pod makes room for the new one; a third agent waits until somebody does."""
    kubectl = fake_kubectl
    make(kubectl, a_supervisor("one", heartbeat=NONE), a_supervisor("two", heartbeat=NONE))
    kubectl("wait", "sup", "--all", "--for=condition=Ready", "--timeout=30s")
    kubectl("create", "quota", "tight", "--hard=pods=2")
    kubectl.wait("quota/tight", "jsonpath={.status.used.pods}=2")
    make(kubectl, a_supervisor("three", heartbeat=NONE))
    stalled = '{.status.conditions[?(@.type=="Stalled")].reason}'
    kubectl.wait("sup/three", f"jsonpath={stalled}=CreateRefused")
    kubectl.patch("three", {"operatingMode": "Stopped"})
    kubectl.patch("one", {"agent": {"image": "localhost/agent:2"}})
    kubectl.wait_status("one", podName="one-r2", phase="ACTIVE")
    kubectl.patch("three", {"operatingMode": "Running"})
    kubectl.patch("two", {"operatingMode": "Stopped"})
    kubectl.wait_status("three", podName="three-r1", phase="ACTIVE")
    assert troubled.creates("pods") == 4
