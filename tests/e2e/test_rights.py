"""The rights of the operator, judged by all that the tests before this one led it to do."""

from __future__ import annotations

import pytest

from tests.cluster.images import SAMPLE_AGENT
from tests.e2e.living import until
from tests.support.audit import AuditLog, Right, denied, granted, used
from tests.support.builders import a_supervisor
from tests.support.duties import NONE, find_a_name_taken, pause_twice_and_stop, run_a_team
from tests.support.kubectl import Kubectl

IDLE = {
    "image": SAMPLE_AGENT,
    "command": ["sleep", "infinity"],
    "terminationGracePeriodSeconds": 1,
}
IN_A_POD = "authentication.kubernetes.io/pod-name"
"""Not so the tests, which borrow the operator's account to try the policies."""
NEVER_USED: dict[Right, str] = {
    ("patch", "heartbeats/status"): "held to be handed on to agents",
    ("get", "namespaces"): "for --namespace, which tests/integration/test_rbac.py uses",
}
"""All that is granted and not used in the whole run."""
RETURN_SECONDS = 120.0


def all_of_it_is_back(kubectl: Kubectl) -> None:
    """The test before took the API server away: scheduler, kubelets and operator return in turn."""
    kubectl.create(a_supervisor("first", heartbeat=NONE, agent=IDLE))
    until(
        lambda: kubectl.get("sup", "first").get("status", {}).get("phase") == "ACTIVE",
        "the control plane brings an agent up again",
        RETURN_SECONDS,
    )


@pytest.mark.timeout(300)
def test_all_rights_were_used_and_none_was_missing(
    operator_kubectl: Kubectl, node_kubectl: Kubectl
) -> None:
    all_of_it_is_back(node_kubectl)
    for duty in (pause_twice_and_stop, find_a_name_taken, run_a_team):
        duty(node_kubectl, IDLE)
    everything = AuditLog(operator_kubectl.cluster, start=0).entries()
    entries = [entry for entry in everything if IN_A_POD in entry["user"].get("extra", {})]
    # An API server that has just been started forbids all until it has read its Roles.
    assert used(denied(entries)) - granted() == set()
    assert granted() - used(entries) == NEVER_USED.keys()
