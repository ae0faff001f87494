"""Another operator takes over a running fleet: newer or older, it restarts nobody."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.integration.test_bad_input import loose_crd
from tests.support.builders import AGENT, a_supervisor, a_team
from tests.support.fleet import Fleet, beating
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess

INTERVAL = 5
BEATS = {"intervalSeconds": INTERVAL}
NONE = {"source": "None"}
OLD, NEW = "localhost/supervisor-operator:1", "localhost/supervisor-operator:2"
PASSES = re.compile(r'reconcile_total\{kind="Supervisor",result="\w+"\} (\d+)')
FLEET = {"beats": "beats-r1", "crew-member": "crew-member-r1"}
"""Those with a relay."""


class Replace(Protocol):
    def __call__(self, image: str, *flags: str) -> OperatorProcess: ...


@pytest.fixture
def replace(fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path) -> Iterator[Replace]:
    """Starts an operator of some image, and ends the one before it."""
    running: list[OperatorProcess] = []

    def start(image: str, *flags: str) -> OperatorProcess:
        for before in running:
            before.stop()
        running.clear()
        place = fake_kubectl.namespace
        flags = (f"--namespace={place}", f"--relay-image={image}", "--resync-seconds=1", *flags)
        log = tmp_path / f"{image.rpartition(':')[2]}.log"
        running.append(OperatorProcess(operator_access, log, *flags).start().ready())
        return running[0]

    yield start
    for left in running:
        left.kill()


@pytest.fixture
def fleet(fake_kubectl: Kubectl, replace: Replace) -> Iterator[Fleet]:
    """Agents of every sort at work under the older operator, beating."""
    replace(OLD)
    fake_kubectl.create(a_supervisor("plain", heartbeat=NONE))
    fake_kubectl.create(a_supervisor("beats", heartbeat=BEATS, config={"a": 1}))
    fake_kubectl.create(a_supervisor("paused", heartbeat=NONE, operatingMode="Paused"))
    member = {"name": "member", "template": {"agent": AGENT, "heartbeat": BEATS}}
    fake_kubectl.create(a_team(members=[member]))
    for pod in FLEET.values():
        fake_kubectl.wait(f"heartbeat/{pod}", "create")
    with beating(fake_kubectl, FLEET.values(), 1.0) as found:
        for name in (*FLEET, "plain"):
            fake_kubectl.wait_status(name, phase="ACTIVE")
        yield found


def identities(kubectl: Kubectl) -> dict[str, str]:
    items = kubectl("get", "pods", "-o", "json").json["items"]
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}


def relay_image(kubectl: Kubectl, pod: str) -> str:
    found: str = kubectl.get("pod", pod)["spec"]["initContainers"][0]["image"]
    return found


def passes(operator: OperatorProcess) -> int:
    return sum(map(int, PASSES.findall(operator.get("/metrics").replace(".0\n", "\n"))))


def looked_twice(operator: OperatorProcess, agents: int) -> None:
    """Wait until it has passed over everybody at least two times since now."""
    before = passes(operator)
    operator.until(lambda: passes(operator) >= before + 2 * agents)


def test_a_new_operator_with_a_new_relay_restarts_nobody(
    fleet: Fleet, fake_kubectl: Kubectl, replace: Replace
) -> None:
    before = identities(fake_kubectl)
    assert before.keys() == {"plain-r1", "beats-r1", "crew-member-r1"}
    newer = replace(NEW, "--workers=4", "--node-grace-seconds=30")
    looked_twice(newer, agents=4)
    assert identities(fake_kubectl) == before
    for name in ("plain", "beats", "crew-member"):
        status = fake_kubectl.get("sup", name)["status"]
        assert (status["phase"], status["run"], status["restarts"]) == ("ACTIVE", 1, 0)
    assert relay_image(fake_kubectl, "beats-r1") == OLD

    fleet.leave("beats-r1")
    fake_kubectl("delete", "pod", "beats-r1")
    fake_kubectl.wait("pod/beats-r2", "create")
    assert relay_image(fake_kubectl, "beats-r2") == NEW, "the next run has it"


def test_an_old_operator_leaves_the_pods_of_newer_objects_alone(
    fleet: Fleet, fake_kubectl: Kubectl, replace: Replace
) -> None:
    before = identities(fake_kubectl)
    with loose_crd(fake_kubectl):
        fake_kubectl.patch("beats", {"futureField": {"deep": 1}, "agent": {"futureField": "x"}})
        fake_kubectl.patch("plain", {"operatingMode": "Hibernating"})
        stalled = "jsonpath={.status.conditions[?(@.type=='Stalled')].reason}=InvalidSpec"
        fake_kubectl.wait("sup/plain", stalled)
        older = replace(OLD)
        looked_twice(older, agents=4)
        assert identities(fake_kubectl) == before
        status = fake_kubectl.get("sup", "beats")["status"]
        assert (status["phase"], status["health"], status["restarts"]) == ("ACTIVE", "HEALTHY", 0)
        fake_kubectl.patch("plain", {"operatingMode": "Running"})
        fake_kubectl.wait("sup/plain", "condition=Ready")
        fake_kubectl.patch("beats", {"futureField": None, "agent": {"futureField": None}})
    assert identities(fake_kubectl) == before
    assert "Traceback" not in older.log
    del fleet
