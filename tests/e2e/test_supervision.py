"""Real agents in real pods, supervised by the operator in the cluster.

All agents of this page are started together, before the first test: most lead their lives alone.
"""

import json
import time

import pytest

from tests.cluster import faults
from tests.cluster.places import CHECKOUT
from tests.e2e.living import (
    AGENT,
    ALLOWED,
    GRACE,
    INTERVAL,
    QUICK,
    RELAY,
    an_agent,
    create_all,
    sequence,
    status,
    until,
)
from tests.support.kstatus import kstatus
from tests.support.kubectl import Kubectl

HELLO = CHECKOUT / "manifests/samples/hello.yaml"
TALKS = ("sh", "-c", f"echo working on BTCUSDT; exec {AGENT}")
CRASHES = ("sh", "-c", "echo no such symbol >&2; exit 3")
BEATS_BY_ITSELF = """
import json, os, ssl, time, urllib.request
print(open(os.environ["SUPERVISION_CONFIG_FILE"]).read(), flush=True)
folder = os.environ["SUPERVISION_TOKEN_DIR"]
context = ssl.create_default_context(cafile=folder + "/ca.crt")
url = "https://{KUBERNETES_SERVICE_HOST}/apis/supervision.dev/v1alpha1/namespaces/"
url += "{SUPERVISION_NAMESPACE}/heartbeats/{SUPERVISION_POD_NAME}/status"
sequence = 0
while True:
    sequence += 1
    beat = json.dumps({"status": {"sequence": sequence, "beatAgeMillis": 0}}).encode()
    headers = {"Content-Type": "application/merge-patch+json"}
    headers["Authorization"] = "Bearer " + open(folder + "/token").read()
    request = urllib.request.Request(url.format(**os.environ), beat, headers, method="PATCH")
    urllib.request.urlopen(request, timeout=5, context=context).read()
    time.sleep(float(os.environ["SUPERVISION_INTERVAL_SECONDS"]) / 2)
"""
CONFIG = {"symbols": ["BTCUSDT"], "limits": {"daily": 100}}
API = {"heartbeat": {"source": "API"}, "config": CONFIG}
LONG_WORK = ALLOWED + 4


@pytest.fixture(scope="module", autouse=True)
def _started(agents: Kubectl) -> None:
    agents("apply", "-f", str(HELLO))
    create_all(
        agents,
        an_agent("freezes", *TALKS),
        an_agent("crashes", *CRASHES, restart={"maxRestarts": 3}),
        an_agent("finishes", AGENT, "finish-after", "2"),
        an_agent("hopeless", AGENT, "freeze-after", "1", restart={"maxRestarts": 0}),
        an_agent("works", AGENT, "busy", str(LONG_WORK), heartbeat={"maxBusySeconds": LONG_WORK}),
        an_agent("api", "python3", "-c", BEATS_BY_ITSELF, **API),
        an_agent("pauses"),
        an_agent("loses-relay"),
    )


def test_the_smallest_supervisor_beats_through_its_relay(agents: Kubectl) -> None:
    found = agents.wait_status("hello", phase="ACTIVE", health="HEALTHY")
    assert kstatus(found) == "Current"
    beat = agents.get("hb", "hello-r1")
    assert beat["spec"]["podUID"] == found["status"]["podUID"]
    assert beat["status"]["sequence"] >= 1
    assert beat["status"]["metrics"]["turn"] >= 1
    assert "problem" not in beat["status"]
    row = agents("get", "sup", "hello", "--no-headers").out.split()
    assert row[:5] == ["hello", "ACTIVE", "HEALTHY", "HeartbeatFresh", "0/3"]


def test_its_pod_is_admitted_where_only_restricted_ones_are_without_a_warning(
    agents: Kubectl,
) -> None:
    agents.wait_status("hello", phase="ACTIVE")
    warn = "pod-security.kubernetes.io/warn=restricted"
    agents("label", "namespace", agents.namespace, warn)
    pod = agents.get("pod", "hello-r1")
    again = {"apiVersion": "v1", "kind": "Pod", "spec": pod["spec"]}
    asked = agents(
        "create", "--dry-run=server", "-f", "-", stdin=again | {"metadata": {"name": "again"}}
    )
    assert asked.err == ""


def test_a_frozen_agent_is_noticed_on_time_replaced_and_can_be_read(agents: Kubectl) -> None:
    agents.wait_status("freezes", phase="ACTIVE", health="HEALTHY")
    frozen = time.monotonic()
    faults.freeze(agents.cluster, agents.get("pod", "freezes-r1"))
    found = agents.wait_status("freezes", health="UNRESPONSIVE")
    judged = time.monotonic()
    assert ALLOWED - INTERVAL / 2 <= judged - frozen <= ALLOWED + INTERVAL / 2 + 2
    assert found["status"]["missedHeartbeats"] == 4
    agents.wait_status("freezes", podName="freezes-r2")
    assert time.monotonic() - judged <= max(QUICK["delaySeconds"], GRACE) + 5

    found = agents.wait_status("freezes", phase="ACTIVE", health="HEALTHY")
    assert found["status"]["restartSummary"] == "1/3"
    end = found["status"]["lastTermination"]
    assert (end["podName"], end["reason"]) == ("freezes-r1", "HeartbeatsMissed")
    assert (end["exitCode"], end["message"]) == (137, "working on BTCUSDT\n")
    assert agents("logs", "freezes-r1", "-c", "agent").out == "working on BTCUSDT\n"
    assert agents.events("freezes") == [
        *("Spawned", "Active", "Unresponsive", "RestartScheduled"),
        *("Restarted", "Active", "Recovered"),
    ]


def test_a_crash_loop_ends_after_exactly_the_restarts_allowed(agents: Kubectl) -> None:
    found = agents.wait_status("crashes", phase="FAILED")
    assert kstatus(found) == "Failed"
    assert found["status"]["restarts"] == 3
    assert found["status"]["restartSummary"] == "3/3"
    assert found["status"]["outcome"]["reason"] == "RestartBudgetExhausted"
    end = found["status"]["lastTermination"]
    assert (end["podName"], end["exitCode"]) == ("crashes-r4", 3)
    assert end["message"] == "no such symbol\n"
    assert agents("logs", "crashes-r4", "-c", "agent").out == "no such symbol\n"
    assert agents.events("crashes") == [
        *("Spawned", *("RestartScheduled", "Restarted") * 3, "RestartBudgetExhausted"),
    ]


def test_an_agent_that_is_done_ends_its_pod_and_is_left_alone(agents: Kubectl) -> None:
    found = agents.wait_status("finishes", phase="TERMINATED")
    assert found["status"]["outcome"]["type"] == "Finished"
    pod = agents.get("pod", "finishes-r1")
    assert pod["status"]["phase"] == "Succeeded", "its relay went with it"
    assert found["status"]["restarts"] == 0


def test_giving_up_on_a_frozen_agent_kills_it_and_keeps_its_pod(agents: Kubectl) -> None:
    found = agents.wait_status("hopeless", phase="FAILED")
    assert found["status"]["outcome"]["reason"] == "RestartBudgetExhausted"
    agents.wait("pod/hopeless-r1", "jsonpath={.status.reason}=DeadlineExceeded")
    agents.wait_status("hopeless", **{"lastTermination.exitCode": "137"})


def test_an_agent_may_beat_by_itself_and_reads_its_config(agents: Kubectl) -> None:
    agents.wait_status("api", phase="ACTIVE", health="HEALTHY")
    pod = agents.get("pod", "api-r1")
    assert [one["name"] for one in pod["spec"]["containers"]] == ["agent"]
    assert "initContainers" not in pod["spec"]
    assert json.loads(agents("logs", "api-r1").out) == CONFIG
    before = sequence(agents, "api-r1")
    until(lambda: sequence(agents, "api-r1") > before, "another beat")


def test_a_relay_that_dies_is_started_again_and_the_agent_knows_nothing(agents: Kubectl) -> None:
    agents.wait_status("loses-relay", phase="ACTIVE")
    pod = agents.get("pod", "loses-relay-r1")
    before = faults.pids(agents.cluster, pod), sequence(agents, "loses-relay-r1")
    faults.kill(agents.cluster, pod, RELAY)
    restarted = "jsonpath={.status.initContainerStatuses[0].restartCount}=1"
    agents.wait("pod/loses-relay-r1", restarted)
    until(lambda: sequence(agents, "loses-relay-r1") > before[1], "beats through the new relay")
    assert faults.pids(agents.cluster, agents.get("pod", "loses-relay-r1")) == before[0]
    agents.wait_status("loses-relay", health="HEALTHY")
    assert status(agents, "loses-relay")["run"] == 1


def test_a_paused_agent_stays_and_its_silence_is_not_judged(agents: Kubectl) -> None:
    agents.wait_status("pauses", phase="ACTIVE")
    agents.patch("pauses", {"operatingMode": "Paused"})
    agents.wait_status("pauses", phase="PAUSED")
    pod = agents.get("pod", "pauses-r1")
    pids = faults.freeze(agents.cluster, pod)
    silent = time.monotonic()
    until(lambda: time.monotonic() - silent > ALLOWED + INTERVAL, "the time is what is tested")
    assert status(agents, "pauses")["phase"] == "PAUSED"
    assert faults.thaw(agents.cluster, pod) == pids
    agents.patch("pauses", {"operatingMode": "Running"})
    agents.wait_status("pauses", phase="ACTIVE", health="HEALTHY")
    assert agents.events("pauses") == ["Spawned", "Active", "Paused", "Resumed"]
    assert faults.pids(agents.cluster, pod) == pids


def test_announced_work_is_no_silence(agents: Kubectl) -> None:
    """It has worked more than twice without a beat for longer than silence is allowed."""
    until(lambda: sequence(agents, "works-r1") >= 5, "the agent's fifth beat")
    assert agents.events("works") == ["Spawned", "Active"]


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_defaults_mean_two_minutes(agents: Kubectl) -> None:
    create_all(agents, an_agent("patient", heartbeat={"intervalSeconds": 30}))
    agents.wait_status("patient", phase="ACTIVE")
    frozen = time.monotonic()
    faults.freeze(agents.cluster, agents.get("pod", "patient-r1"))
    silent = until(
        lambda: status(agents, "patient")["health"] == "UNRESPONSIVE", "the verdict", 140
    )
    assert 120 - 15 <= silent <= 120 + 15 + 2
    agents.wait_status("patient", podName="patient-r2")
    assert time.monotonic() - frozen - silent <= max(QUICK["delaySeconds"], GRACE) + 5
