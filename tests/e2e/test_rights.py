"""The rights of the operator, judged by all that the tests before this one led it to do."""

from __future__ import annotations

from tests.cluster.images import SAMPLE_AGENT
from tests.support.audit import AuditLog, Right, denied, granted, used
from tests.support.duties import find_a_name_taken, pause_twice_and_stop, run_a_team
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


def test_all_rights_were_used_and_none_was_missing(
    operator_kubectl: Kubectl, node_kubectl: Kubectl
) -> None:
    for duty in (pause_twice_and_stop, find_a_name_taken, run_a_team):
        duty(node_kubectl, IDLE)
    everything = AuditLog(operator_kubectl.cluster, start=0).entries()
    entries = [entry for entry in everything if IN_A_POD in entry["user"].get("extra", {})]
    # An API server that has just been started forbids all until it has read its Roles.
    assert used(denied(entries)) - granted() == set()
    assert granted() - used(entries) == NEVER_USED.keys()
