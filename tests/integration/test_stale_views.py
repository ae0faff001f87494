"""Views of the past, changes that were never seen, lists in any order.

An operator that is shown the past may believe in objects that others have replaced by now. It must
not delete, end or count one whose uid is not the one it read, and make nothing twice.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.api_call import Call
from tests.support.behind_proxy import Troubled, behind_proxy
from tests.support.builders import a_supervisor, a_team
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess

NONE = {"source": "None"}
QUICK = {"delaySeconds": 1, "maxDelaySeconds": 1}
WATCHED = ("supervisors", "supervisorteams", "pods", "heartbeats")
Json = dict[str, Any]


@pytest.fixture
def troubled(fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path) -> Iterator[Troubled]:
    flags = ("--resync-seconds=0.1", "--heartbeat-writes-per-second=0")
    with behind_proxy(fake_kubectl, operator_access, tmp_path, *flags) as found:
        yield found


def make(kubectl: Kubectl, *items: Json) -> None:
    stdin = {"apiVersion": "v1", "kind": "List", "items": list(items)}
    kubectl("create", "-f", "-", stdin=stdin)


def revision(kubectl: Kubectl) -> str:
    """Of this moment, the same for all kinds."""
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods?limit=1"
    return str(kubectl("get", "--raw", path).json["metadata"]["resourceVersion"])


def work(troubled: Troubled, since: int = 0) -> Counter[str]:
    """What the operator did that the server accepted, statuses and Events left out."""
    return Counter(
        f"{write.verb} {write.path.rpartition('/namespaces/')[2].partition('/')[2]}"
        for write in troubled.proxy.writes[since:]
        if write.status
        and write.status < 300
        and not write.path.endswith("/status")
        and "/events" not in write.path
    )


def uids(kubectl: Kubectl, kind: str) -> dict[str, str]:
    items = kubectl("get", kind, "-o", "json").json["items"]
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}


def delete_and_wait(kubectl: Kubectl, *names: str) -> None:
    kubectl("delete", "sup", *names, "--cascade=foreground", "--timeout=30s")


def test_a_namesake_is_not_taken_for_the_one_that_was(
    troubled: Troubled, fake_kubectl: Kubectl
) -> None:
    """Deleted and made again while the view stands still, then with an operator that lists it."""
    kubectl, proxy, operator = fake_kubectl, troubled.proxy, troubled.operator
    make(kubectl, a_supervisor(heartbeat=NONE))
    kubectl.wait_status("hello", phase="ACTIVE")
    past = revision(kubectl)
    for plural in WATCHED:
        proxy.show_past(plural, past)
    delete_and_wait(kubectl, "hello")
    make(kubectl, a_supervisor(heartbeat=NONE))
    operator.let_pass(3)
    operator.kill()
    operator.start().ready()
    operator.let_pass(3)
    assert work(troubled) == {"create pods": 1}, "nothing since the first"
    for plural in WATCHED:
        proxy.show_present(plural)
    kubectl.wait_status("hello", phase="ACTIVE")
    assert work(troubled) == {"create pods": 2}
    owner = kubectl.get("pod", "hello-r1")["metadata"]["ownerReferences"][0]
    assert owner["uid"] == kubectl.get("sup", "hello")["metadata"]["uid"]
    assert kubectl.get("sup", "hello")["status"]["run"] == 1


def test_what_the_past_calls_for_is_not_done_to_namesakes(
    troubled: Troubled, fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path
) -> None:
    """One to stop, one to replace, one to end for its silence, one to clear up after."""
    kubectl, proxy, operator = fake_kubectl, troubled.proxy, troubled.operator
    silent = {"intervalSeconds": 1, "missedThreshold": 0, "startupSeconds": 1}
    names = ("stopped", "edited", "ended", "frozen")
    make(kubectl, *(a_supervisor(name) for name in names[:3]), a_supervisor("frozen"))
    kubectl("wait", "sup", "--all", "--for=jsonpath={.status.startTime}", "--timeout=30s")

    def deletes_a_heartbeat(call: Call) -> bool:
        return (call.verb, call.plural) == ("delete", "heartbeats")

    refusal = proxy.refuse(deletes_a_heartbeat, 503, "not now", times=None)
    kubectl("label", "pod", "ended-r1", "fake.test/exit-code=0")
    kubectl.wait_status("ended", phase="TERMINATED")
    operator.kill()
    kubectl.patch("stopped", {"operatingMode": "Stopped"})
    kubectl.patch("edited", {"agent": {"image": "localhost/agent:2"}})
    kubectl.patch("frozen", {"heartbeat": silent, "updateStrategy": {"type": "OnDelete"}})
    past = revision(kubectl)
    delete_and_wait(kubectl, *names)
    make(kubectl, *(a_supervisor(name) for name in names))
    mine = f"--namespace={kubectl.namespace}"
    with OperatorProcess(operator_access, tmp_path / "other.log", mine):
        kubectl("wait", "sup", "--all", "--for=jsonpath={.status.startTime}", "--timeout=30s")
    there = uids(kubectl, "pods"), uids(kubectl, "hb")

    for plural in WATCHED:
        proxy.show_past(plural, past)
    refusal.times = 0
    since, calls = len(proxy.writes), proxy.calls("delete")
    operator.start().ready()
    operator.until(lambda: proxy.calls("delete") >= calls + 2)
    operator.let_pass(20)
    assert work(troubled, since) == Counter()
    for plural in WATCHED:
        proxy.show_present(plural)
    operator.let_pass(20)
    assert work(troubled, since) == Counter()
    assert (uids(kubectl, "pods"), uids(kubectl, "hb")) == there
    marks = kubectl.get("pod", "frozen-r1")["metadata"]["annotations"]
    assert "supervision.dev/ended-by" not in marks


def test_a_change_and_its_opposite_that_were_never_seen_apart(
    troubled: Troubled, fake_kubectl: Kubectl
) -> None:
    kubectl, proxy, operator = fake_kubectl, troubled.proxy, troubled.operator
    worker = {"agent": {"image": "localhost/agent:1"}, "heartbeat": NONE}
    crew = a_team("crew", members=[{"name": "w", "replicas": 1, "template": worker}])
    flips = [a_supervisor(name, heartbeat=NONE) for name in ("edit", "rest", "again")]
    make(kubectl, *flips, crew)
    kubectl("wait", "supteam/crew", "--for=condition=Ready", "--timeout=30s")
    kubectl("wait", "sup", "--all", "--for=condition=Ready", "--timeout=30s")
    before, since = uids(kubectl, "pods"), len(proxy.writes)
    held = [("supervisors", name) for name in ("edit", "rest", "again")]
    held += [("supervisorteams", "crew"), ("pods", "again-r1")]
    for plural, name in held:
        proxy.hold_object(plural, name)

    kubectl.patch("edit", {"agent": {"image": "localhost/agent:2"}})
    kubectl.patch("edit", {"agent": {"image": "localhost/agent:1"}})
    kubectl.patch("rest", {"operatingMode": "Stopped"})
    kubectl.patch("rest", {"operatingMode": "Paused"})
    kubectl.patch("rest", {"operatingMode": "Running"})
    for replicas in (3, 1):
        change = f'[{{"op":"replace","path":"/spec/members/0/replicas","value":{replicas}}}]'
        kubectl("patch", "supteam", "crew", "--type=json", "-p", change)
    delete_and_wait(kubectl, "again")
    make(kubectl, a_supervisor("again", heartbeat=NONE))
    proxy.wait_for(lambda: all(proxy.kept_back(*one) for one in held))
    operator.let_pass(5)
    assert work(troubled, since) == Counter()

    for plural, name in held:
        proxy.release_last(plural, name)
    for name in ("edit", "rest"):
        kubectl.wait(
            f"sup/{name}", "jsonpath={.status.observedGeneration}=" + generation(kubectl, name)
        )
    kubectl.wait_status("again", phase="ACTIVE")
    kubectl.wait("supteam/crew", "jsonpath={.status.observedGeneration}=3")
    operator.let_pass(10)
    assert work(troubled, since) == {"create pods": 1}, "again is another one; else nothing"
    after = uids(kubectl, "pods")
    assert {name for name in before if after[name] != before[name]} == {"again-r1"}


def test_a_late_view_of_supervisors_starts_nobody_in_the_name_of_the_dead(
    troubled: Troubled, fake_kubectl: Kubectl
) -> None:
    """One runs and one is in back-off when they are deleted; their pods are seen to be gone."""
    kubectl, proxy, operator = fake_kubectl, troubled.proxy, troubled.operator
    slow, names = {"delaySeconds": 3, "maxDelaySeconds": 3}, ("runs", "rests")
    make(kubectl, *(a_supervisor(name, heartbeat=NONE, restart=slow) for name in names))
    kubectl("wait", "sup", "--all", "--for=condition=Ready", "--timeout=30s")
    kubectl("label", "pod", "rests-r1", "fake.test/exit-code=3")
    kubectl.wait("sup/rests", "jsonpath={.status.nextRestartTime}")
    since = len(proxy.writes)
    proxy.show_past("supervisors", revision(kubectl))
    delete_and_wait(kubectl, *names)
    operator.until(lambda: all(f'"{name}" not found' in operator.log for name in names))
    assert work(troubled, since) == Counter()


def test_a_late_view_of_a_team_neither_makes_nor_removes_members(
    troubled: Troubled, fake_kubectl: Kubectl
) -> None:
    """Its members are seen as they are: one that joined since, and none where it was deleted."""
    kubectl, proxy, operator = fake_kubectl, troubled.proxy, troubled.operator
    worker = {"agent": {"image": "localhost/agent:1"}, "heartbeat": NONE}
    both = [{"name": name, "template": worker} for name in "ab"]
    make(kubectl, a_team("grown", members=both[:1]), a_team("gone", members=both))
    kubectl("wait", "supteam", "--all", "--for=condition=Ready", "--timeout=30s")
    past = revision(kubectl)
    change = f'[{{"op":"add","path":"/spec/members/1","value":{json.dumps(both[1])}}}]'
    kubectl("patch", "supteam", "grown", "--type=json", "-p", change)
    kubectl.wait_status("grown-b", phase="ACTIVE")
    operator.kill()
    proxy.show_past("supervisorteams", past)
    there, since = uids(kubectl, "sup"), len(proxy.writes)
    operator.start().ready()
    kubectl("delete", "supteam", "gone", "--cascade=foreground", "--timeout=30s")
    operator.until(lambda: "team gone is gone" in operator.log)
    operator.until(lambda: "team grown has changed" in operator.log)
    operator.let_pass(10)
    assert work(troubled, since) == Counter()
    proxy.show_present("supervisorteams")
    kubectl.wait("supteam/grown", "jsonpath={.status.memberCount}=2")
    operator.let_pass(10)
    assert work(troubled, since) == Counter()
    left = {name: uid for name, uid in there.items() if name.startswith("grown")}
    assert uids(kubectl, "sup") == left


def generation(kubectl: Kubectl, name: str) -> str:
    return str(kubectl.get("sup", name)["metadata"]["generation"])


def test_a_world_that_is_read_in_any_order_is_the_same(
    troubled: Troubled, fake_kubectl: Kubectl
) -> None:
    kubectl, proxy, operator = fake_kubectl, troubled.proxy, troubled.operator
    worker = {"agent": {"image": "localhost/agent:1"}, "heartbeat": NONE, "restart": QUICK}
    members = [{"name": name, "template": worker} for name in "abc"]
    make(
        kubectl,
        a_team("crew", members=members, restartStrategy="OneForAll"),
        a_supervisor("top", heartbeat=NONE),
        *(a_supervisor(f"low{n}", heartbeat=NONE, parentRef={"name": "top"}) for n in range(3)),
        a_supervisor("often", heartbeat=NONE, restart=QUICK | {"keepFinishedPods": 5}),
    )
    kubectl("wait", "supteam/crew", "--for=condition=Ready", "--timeout=30s")
    for run in (1, 2, 3):
        kubectl.wait_status("often", phase="ACTIVE", podName=f"often-r{run}")
        kubectl("label", "pod", f"often-r{run}", "fake.test/exit-code=3")
    kubectl.wait_status("often", phase="ACTIVE", podName="often-r4")
    for seed in (1, 2):
        operator.until(lambda: is_quiet(troubled))
        operator.kill()
        for plural in WATCHED:
            proxy.shuffle_lists(plural, seed)
        since = len(proxy.writes)
        operator.start().ready()
        operator.let_pass(20)
        assert proxy.writes[since:] == (), f"seed {seed}: there was nothing to do"
        kubectl("label", "pod", f"crew-b-r{seed}", "fake.test/exit-code=3")
        for member in "abc":
            kubectl.wait_status(
                f"crew-{member}", phase="ACTIVE", podName=f"crew-{member}-r{seed + 1}"
            )
        found = work(troubled, since)
        assert found["create pods"] == 3, found
        assert {what for what in found if what.startswith("delete pods/crew")} >= {
            f"delete pods/crew-a-r{seed}",
            f"delete pods/crew-c-r{seed}",
        }


def is_quiet(troubled: Troubled) -> bool:
    """No write while every object was looked at twice and more."""
    known = len(troubled.proxy.writes)
    troubled.operator.let_pass(60)
    return len(troubled.proxy.writes) == known
