"""A kubelet or a node's network goes away and comes back: no agent pays for it."""

import pytest

from tests.cluster import faults
from tests.e2e.living import (
    INTERVAL,
    a_template,
    beats_again,
    condition,
    create_all,
    incarnations,
    status,
    until,
)
from tests.support.builders import a_supervisor
from tests.support.in_cluster import operator_node
from tests.support.kubectl import Kubectl

NAMES = ("near", "far")
BEAT = {"intervalSeconds": INTERVAL}


@pytest.fixture(scope="module")
def far(operator_kubectl: Kubectl) -> int:
    """The number of the node that the operator is not on."""
    return 1 - operator_node(operator_kubectl)


@pytest.fixture(scope="module", autouse=True)
def _started(agents: Kubectl, far: int) -> None:
    """One agent beside the operator, one on the other node."""
    for name, number in zip(NAMES, (1 - far, far), strict=True):
        where = {"kubernetes.io/hostname": f"node-{number}"}
        create_all(agents, a_supervisor(name, agent=a_template(nodeSelector=where), heartbeat=BEAT))
    for name in NAMES:
        agents.wait_status(name, phase="ACTIVE", health="HEALTHY")


def test_beats_go_on_without_a_kubelet(agents: Kubectl, far: int) -> None:
    before = incarnations(agents)
    faults.stop_kubelet(agents.cluster, far)
    try:
        agents.wait(f"node/node-{far}", "condition=Ready=Unknown")
        agents.wait("pod/far-r1", "condition=Ready=false")
        beats_again(agents, "far")
        assert status(agents, "far")["phase"] == "ACTIVE"
    finally:
        faults.start_kubelet(agents.cluster, far)
    agents.wait(f"node/node-{far}", "condition=Ready")
    agents.wait("pod/far-r1", "condition=Ready")
    assert incarnations(agents) == before
    assert agents.events("far")[-1] == "Active"


def test_an_agent_behind_a_pulled_cable_is_marked_and_left_alone(agents: Kubectl, far: int) -> None:
    before = incarnations(agents)
    faults.pull_cable(agents.cluster, far)
    try:
        agents.wait_status("far", health="UNRESPONSIVE")
        until(lambda: condition(agents, "far")["reason"] == "NodeUnreachable", "the node is blamed")
        assert condition(agents, "far", "Reconciling")["reason"] == "RemediationHeld"
    finally:
        faults.plug_cable(agents.cluster, far)
    beats_again(agents, "far")
    assert incarnations(agents) == before
    story = agents.events("far")
    assert story[-1] == "Recovered"
    assert "RestartScheduled" not in story
    assert status(agents, "near")["health"] == "HEALTHY"
