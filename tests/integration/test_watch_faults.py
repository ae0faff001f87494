"""Watches that are cut, forgotten or late, and an operator that dies while it creates."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support.behind_proxy import Troubled, behind_proxy
from tests.support.builders import a_supervisor
from tests.support.kubectl import Kubectl

NOTICED_SECONDS = 15
"""Without the news of the 410 it would be the sweep's ten minutes; kubectl alone may take some."""
NONE = {"source": "None"}
WATCHED = ("pods", "heartbeats", "supervisors")


@pytest.fixture
def troubled(fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path) -> Iterator[Troubled]:
    with behind_proxy(fake_kubectl, operator_access, tmp_path, "--resync-seconds=0.3") as found:
        yield found


def a_list(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": items}


def go_blind(troubled: Troubled) -> None:
    """From here on no watch tells anything."""
    proxy = troubled.proxy
    proxy.wait_for(lambda: all(proxy.open_watches(plural) for plural in WATCHED))
    for plural in WATCHED:
        proxy.hold_watch(plural)


def see_again_from_a_list(troubled: Troubled) -> float:
    """Cut the watches, forget their revisions; returns when all of them were told so."""
    proxy = troubled.proxy
    told = [proxy.gone_next_watch(plural) for plural in WATCHED]
    for plural in WATCHED:
        assert proxy.cut_watches(plural) == 1
        proxy.release_watch(plural)
    for happening in told:
        happening.wait()
    return time.monotonic()


def known(troubled: Troubled) -> int:
    """How many Supervisors the operator believes in."""
    lines = troubled.operator.get("/metrics").splitlines()
    start = "supervisor_operator_supervisors{"
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith(start))


def test_what_is_deleted_across_a_410_is_noticed(troubled: Troubled, fake_kubectl: Kubectl) -> None:
    kubectl = fake_kubectl
    agents = [a_supervisor("pod", heartbeat=NONE), a_supervisor("beat"), a_supervisor("owner")]
    kubectl("create", "-f", "-", stdin=a_list(agents))
    kubectl("wait", "sup", "--all", "--for=jsonpath={.status.podUID}", "--timeout=30s")
    kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=30s")
    kubectl.wait_status("pod", phase="ACTIVE")
    old_beat = kubectl.get("hb", "beat-r1")["metadata"]["uid"]

    go_blind(troubled)
    kubectl("delete", "pod/pod-r1", "hb/beat-r1", "sup/owner", "--wait=false")
    for gone in ("pod/pod-r1", "hb/beat-r1", "sup/owner", "pod/owner-r1"):
        kubectl("wait", gone, "--for=delete", "--timeout=20s")
    assert troubled.creates("pods") == 3
    told = see_again_from_a_list(troubled)

    kubectl.wait_status("pod", podName="pod-r2")
    kubectl.wait("hb/beat-r1", "create")
    troubled.operator.until(lambda: known(troubled) == 2)
    assert time.monotonic() - told < NOTICED_SECONDS
    assert kubectl.get("hb", "beat-r1")["metadata"]["uid"] != old_beat
    assert kubectl.get("sup", "beat")["status"]["restarts"] == 0
    assert_no_create_for_the_dead(troubled, kubectl, pods=4, heartbeats=3)


def assert_no_create_for_the_dead(
    troubled: Troubled, kubectl: Kubectl, *, pods: int, heartbeats: int
) -> None:
    troubled.operator.let_pass(3)
    assert troubled.creates("pods") == pods
    assert troubled.creates("heartbeats") == heartbeats
    assert "owner-r2" not in kubectl.names("pods")


def test_the_only_supervisor_is_deleted_across_a_410(
    troubled: Troubled, fake_kubectl: Kubectl
) -> None:
    """kopf has nothing to report after such a re-list: its LIST is empty."""
    fake_kubectl.create(a_supervisor("owner", heartbeat=NONE))
    fake_kubectl.wait_status("owner", phase="ACTIVE")
    go_blind(troubled)
    fake_kubectl("delete", "sup/owner", "--wait=false")
    fake_kubectl("wait", "pod/owner-r1", "--for=delete", "--timeout=20s")
    told = see_again_from_a_list(troubled)
    troubled.operator.until(lambda: known(troubled) == 0)
    assert time.monotonic() - told < NOTICED_SECONDS
    assert troubled.creates("pods") == 1


def test_an_own_create_that_the_watch_does_not_show_is_not_repeated(
    troubled: Troubled, fake_kubectl: Kubectl
) -> None:
    troubled.proxy.hold_watch("pods")
    fake_kubectl.create(a_supervisor(heartbeat=NONE))
    fake_kubectl.wait_status("hello", podName="hello-r1")
    troubled.operator.let_pass(3)
    assert fake_kubectl.names("pods") == ["hello-r1"]

    fake_kubectl.patch("hello", {"agent": {"image": "localhost/agent:2"}})
    fake_kubectl("wait", "pod/hello-r1", "--for=delete", "--timeout=20s")
    troubled.operator.let_pass(3)
    assert fake_kubectl.names("pods") == [], "its end has not been seen yet"

    troubled.proxy.release_watch("pods")
    fake_kubectl.wait_status("hello", podName="hello-r2", phase="ACTIVE")
    assert troubled.creates("pods") == 2


def test_a_pod_gone_before_its_delete_is_answered_is_replaced_for_the_right_reason(
    troubled: Troubled, fake_kubectl: Kubectl
) -> None:
    """The watch is faster than the answer: what was written down before the delete still holds."""
    fake_kubectl.create(a_supervisor(heartbeat=NONE))
    fake_kubectl.wait_status("hello", phase="ACTIVE")
    proxy = troubled.proxy

    def answer_when_it_is_gone() -> None:
        if proxy.writes[-1].verb == "delete":
            fake_kubectl("wait", "pod/hello-r1", "--for=delete", "--timeout=20s")

    for number in range(len(proxy.writes) + 1, len(proxy.writes) + 6):
        proxy.after_write(number, answer_when_it_is_gone)
    fake_kubectl.patch("hello", {"agent": {"image": "localhost/agent:2"}})
    fake_kubectl.wait_status("hello", podName="hello-r2", phase="ACTIVE")
    marks = fake_kubectl.get("pod", "hello-r2")["metadata"]["annotations"]
    assert marks["supervision.dev/reason"] == "TemplateChanged"


def test_ten_operator_kills_while_100_supervisors_are_created(
    troubled: Troubled, fake_kubectl: Kubectl
) -> None:
    """100 pods, none double, none lost."""
    operator, proxy = troubled.operator, troubled.proxy
    items = [a_supervisor(f"a{number}", heartbeat=NONE) for number in range(100)]
    user = threading.Thread(
        target=fake_kubectl, args=("create", "-f", "-"), kwargs={"stdin": a_list(items)}
    )
    user.start()
    for number in range(1, 11):
        when: Literal["before", "after"] = "after" if number % 2 else "before"
        kill = proxy.kill_at(len(proxy.writes) + 25, when, lambda: operator.pid)
        kill.wait()
        operator.wait_end()
        operator.start()
    user.join(30)
    operator.ready()
    fake_kubectl("wait", "sup", "--all", "--for=condition=Ready", "--timeout=60s")
    assert fake_kubectl.names("pods") == sorted(f"a{number}-r1" for number in range(100))
    assert troubled.creates("pods") == 100
    items = fake_kubectl("get", "sup", "-o", "json").json["items"]
    assert {(item["status"]["run"], item["status"]["restarts"]) for item in items} == {(1, 0)}
