"""Beats judged and agents restarted on a real API server, with pod-bound tokens."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

import pytest

from tests.support.builders import a_supervisor
from tests.support.fleet import beating
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess

INTERVAL = 1
ALLOWED = 4 * INTERVAL
IMAGE = {"image": "x", "imageID": ""}
QUICK = {"delaySeconds": 1, "maxDelaySeconds": 1}


def an_agent(name: str = "hello", **spec: Any) -> dict[str, Any]:
    base = {"heartbeat": {"intervalSeconds": INTERVAL}, "restart": QUICK}
    return a_supervisor(name, **(base | spec))


def spawn(kubectl: Kubectl, *items: dict[str, Any]) -> list[str]:
    """Create Supervisors and wait for their first pods to run."""
    kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})
    kubectl("wait", "sup", "--all", "--for=jsonpath={.status.podName}", "--timeout=60s")
    return [f"{item['metadata']['name']}-r1" for item in items]


def pods_of(kubectl: Kubectl) -> dict[str, str]:
    items = kubectl("get", "pods", "-o", "json").json["items"]
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}


def wait_all(kubectl: Kubectl, field: str, word: str) -> None:
    kubectl("wait", "sup", "--all", f"--for=jsonpath={{.status.{field}}}={word}", "--timeout=60s")


def test_freeze_verdict_restart_and_recovery(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    kubectl = fake_kubectl
    with beating(kubectl, spawn(kubectl, an_agent()), INTERVAL / 2) as fleet:
        kubectl.wait_status("hello", phase="ACTIVE", health="HEALTHY")
        heartbeat = kubectl.get("hb", "hello-r1")
        assert heartbeat["spec"]["podUID"] == kubectl.get("pod", "hello-r1")["metadata"]["uid"]
        fleet.freeze("hello-r1")
        frozen_at = time.monotonic()
        kubectl.wait("sup/hello", "jsonpath={.status.health}=UNRESPONSIVE")
        took = time.monotonic() - frozen_at
        assert ALLOWED - INTERVAL / 2 <= took <= ALLOWED + 2
        kubectl.wait_status("hello", podName="hello-r2")
        fleet.join("hello-r2")
        found = kubectl.wait_status("hello", phase="ACTIVE", health="HEALTHY")
    assert found["status"]["restartSummary"] == "1/3"
    assert found["status"]["lastTermination"]["reason"] == "HeartbeatsMissed"
    old = kubectl.get("pod", "hello-r1")
    assert old["status"]["reason"] == "DeadlineExceeded", "kept to be read"
    assert kubectl.events("hello") == [
        *("Spawned", "Active", "Unresponsive", "RestartScheduled"),
        *("Restarted", "Active", "Recovered"),
    ]
    assert "(4 missed, 3 allowed)" in note_of(kubectl, "Unresponsive")
    metrics = operator.get("/metrics")
    assert 'supervisor_operator_verdicts_total{reason="HeartbeatsMissed"} 1.0' in metrics
    assert 'supervisor_operator_restarts_total{reason="Unresponsive"} 1.0' in metrics


def note_of(kubectl: Kubectl, reason: str) -> str:
    chosen = f"--field-selector=reason={reason}"
    return str(kubectl("get", "events", chosen, "-o", "json").json["items"][0]["message"])


def test_budget_exhausted_by_a_frozen_agent(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    del operator
    item = an_agent(restart=QUICK | {"maxRestarts": 0})
    with beating(fake_kubectl, spawn(fake_kubectl, item), INTERVAL / 2) as fleet:
        fake_kubectl.wait_status("hello", phase="ACTIVE")
        fleet.freeze("hello-r1")
        found = fake_kubectl.wait_status("hello", phase="FAILED")
        fake_kubectl.wait("pod/hello-r1", "jsonpath={.status.reason}=DeadlineExceeded")
    assert found["status"]["outcome"]["reason"] == "RestartBudgetExhausted"
    assert fake_kubectl.events("hello")[-1] == "RestartBudgetExhausted"


def test_startup_timeout(operator: OperatorProcess, fake_kubectl: Kubectl) -> None:
    del operator
    beat = {"intervalSeconds": INTERVAL, "startupSeconds": 2}
    spawn(fake_kubectl, an_agent(heartbeat=beat, restart=QUICK | {"onUnresponsive": "MarkOnly"}))
    fake_kubectl.wait("sup/hello", "condition=Unresponsive")
    found = fake_kubectl.get("sup", "hello")["status"]
    assert (found["phase"], found["health"]) == ("SPAWNING", "UNRESPONSIVE")


def test_paused_agents_are_not_judged_and_resume_allows_a_full_silence(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    kubectl = fake_kubectl
    beat, allowed = {"intervalSeconds": INTERVAL, "missedThreshold": 1}, 2 * INTERVAL
    with beating(kubectl, spawn(kubectl, an_agent(heartbeat=beat)), INTERVAL / 2) as fleet:
        kubectl.wait_status("hello", phase="ACTIVE")
        kubectl.patch("hello", {"operatingMode": "Paused"})
        kubectl.wait_status("hello", phase="PAUSED")
        fleet.freeze("hello-r1")
        silent_since = time.monotonic()
        operator.until(lambda: time.monotonic() - silent_since > allowed + 1)
        assert kubectl.get("sup", "hello")["status"]["phase"] == "PAUSED"
        kubectl.patch("hello", {"operatingMode": "Running"})
        resumed = time.monotonic()
        kubectl.wait_status("hello", health="UNRESPONSIVE")
        assert time.monotonic() - resumed >= allowed - 0.5


def test_relay_down_and_node_unreachable_restart_nobody(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    del operator
    kubectl = fake_kubectl
    pods = spawn(kubectl, an_agent("relay"), an_agent("node"))
    before = pods_of(kubectl)
    with beating(kubectl, pods, INTERVAL / 2) as fleet:
        wait_all(kubectl, "phase", "ACTIVE")
        waiting = {"state": {"waiting": {"reason": "CrashLoopBackOff"}, "running": None}}
        relay = {"name": "supervision-relay", "ready": False, "restartCount": 1} | waiting
        set_status(kubectl, "relay-r1", {"initContainerStatuses": [relay | IMAGE]})
        set_status(kubectl, "node-r1", {"conditions": [{"type": "Ready", "status": "False"}]})
        fleet.cut_off(*pods)
        wait_all(kubectl, "health", "UNRESPONSIVE")
        reasons = {name: ready_reason(kubectl, name) for name in ("relay", "node")}
        assert reasons == {"relay": "RelayDown", "node": "NodeUnreachable"}
        fleet.thaw(*pods)
        wait_all(kubectl, "health", "HEALTHY")
    assert pods_of(kubectl) == before


def set_status(kubectl: Kubectl, pod: str, status: dict[str, Any]) -> None:
    patch = json.dumps({"status": status})
    kubectl("patch", "pod", pod, "--subresource=status", "--type=strategic", "-p", patch)


def ready_reason(kubectl: Kubectl, name: str) -> str:
    conditions = kubectl.get("sup", name)["status"]["conditions"]
    return str(next(one["reason"] for one in conditions if one["type"] == "Ready"))


def test_a_storm_of_20_agents_restarts_nobody(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    kubectl = fake_kubectl
    # The storm shows after two intervals and the relay's slack, 4 s; the verdict falls at 6 s.
    beat = {"intervalSeconds": INTERVAL, "missedThreshold": 5}
    pods = spawn(kubectl, *(an_agent(f"a{number}", heartbeat=beat) for number in range(20)))
    before = pods_of(kubectl)
    with beating(kubectl, pods, INTERVAL / 2) as fleet:
        wait_all(kubectl, "health", "HEALTHY")
        fleet.cut_off(*pods)
        wait_all(kubectl, "health", "UNRESPONSIVE")
        assert 'guard_active{guard="storm"} 1.0' in operator.get("/metrics")
        fleet.thaw(*pods)
        wait_all(kubectl, "health", "HEALTHY")
    assert pods_of(kubectl) == before
    assert "none of them is restarted" in note_of(kubectl, "FleetGuard")


def test_an_operator_away_for_longer_than_the_allowance_restarts_nobody(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    kubectl = fake_kubectl
    pods = spawn(kubectl, *(an_agent(f"a{number}") for number in range(5)))
    before = pods_of(kubectl)
    with beating(kubectl, pods, INTERVAL / 2):
        wait_all(kubectl, "health", "HEALTHY")
        operator.signal(signal.SIGSTOP)
        stopped = time.monotonic()
        while time.monotonic() - stopped < 1.5 * ALLOWED:
            time.sleep(0.1)  # the time itself is what is tested
        operator.signal(signal.SIGCONT)
        operator.until(lambda: "blind for" in operator.log)
        operator.stop()
        operator.start().ready()
        marked = time.monotonic()
        operator.until(lambda: time.monotonic() - marked > ALLOWED + 1)
    assert pods_of(kubectl) == before
    healths = {
        item["status"]["health"] for item in kubectl("get", "sup", "-o", "json").json["items"]
    }
    assert healths == {"HEALTHY"}


def test_heartbeat_deleted_by_hand_is_made_again(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    del operator
    with beating(fake_kubectl, spawn(fake_kubectl, an_agent()), INTERVAL / 2):
        fake_kubectl.wait_status("hello", phase="ACTIVE")
        uid = fake_kubectl.get("hb", "hello-r1")["metadata"]["uid"]
        fake_kubectl("delete", "hb", "hello-r1")
        fake_kubectl.wait("hb/hello-r1", "jsonpath={.status.sequence}")
        assert fake_kubectl.get("hb", "hello-r1")["metadata"]["uid"] != uid
    assert fake_kubectl.get("sup", "hello")["status"]["restarts"] == 0


@pytest.mark.parametrize(
    ("agents", "interval"),
    [(20, 3), pytest.param(200, 10, marks=[pytest.mark.soak, pytest.mark.timeout(600)])],
)
def test_twenty_operator_kills_with_beating_agents(
    operator: OperatorProcess, fake_kubectl: Kubectl, agents: int, interval: int
) -> None:
    """No healthy agent is restarted, no counter lost."""
    kubectl = fake_kubectl
    beat = {"intervalSeconds": interval}
    pods = spawn(kubectl, *(an_agent(f"a{number}", heartbeat=beat) for number in range(agents)))
    with beating(kubectl, pods, interval / 3) as fleet:
        wait_all(kubectl, "health", "HEALTHY")
        kubectl("label", "pod", "a0-r1", "fake.test/exit-code=3")
        kubectl.wait_status("a0", podName="a0-r2")
        fleet.leave("a0-r1")
        fleet.join("a0-r2")
        kubectl.wait_status("a0", health="HEALTHY", restartSummary="1/3")
        before = pods_of(kubectl)
        for _ in range(20):
            operator.kill()
            operator.start().ready()
        wait_all(kubectl, "health", "HEALTHY")
    assert pods_of(kubectl) == before
    assert kubectl.get("sup", "a0")["status"]["restartSummary"] == "1/3"
