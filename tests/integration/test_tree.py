"""Supervisors under supervisors, on a real API server."""

from __future__ import annotations

from typing import Any

from tests.support.builders import a_supervisor
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess


def under(name: str, parent: str | None, **spec: Any) -> dict[str, Any]:
    above = {"parentRef": {"name": parent}} if parent else {}
    return a_supervisor(name, **({"heartbeat": {"source": "None"}} | above | spec))


def test_modes_come_down_and_phases_go_up(operator: OperatorProcess, fake_kubectl: Kubectl) -> None:
    del operator
    kubectl = fake_kubectl
    desk = under("desk", None)
    del desk["spec"]["agent"]
    items = [desk, under("trader", "desk"), under("scout", "trader")]
    kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})
    found = kubectl.wait_status("scout", phase="ACTIVE", hierarchyLevel="2")
    kubectl.wait("sup/desk", "jsonpath={.status.children.active}=1")
    kubectl.wait_status("desk", phase="ACTIVE")

    kubectl.patch("desk", {"operatingMode": "Stopped"})
    for name in ("desk", "trader", "scout"):
        found = kubectl.wait_status(name, phase="TERMINATED")
        expected = "Stopped" if name == "desk" else "Running"
        assert found["spec"]["operatingMode"] == expected, "no spec is written"
    assert kubectl.names("pods") == []
    kubectl.patch("desk", {"operatingMode": "Running"})
    kubectl.wait_status("scout", phase="ACTIVE", podName="scout-r2")


def test_a_cycle_a_missing_parent_and_a_tree_too_deep_are_told_and_stop_nobody(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    del operator
    kubectl = fake_kubectl
    items = [under("a", "b"), under("b", "c"), under("c", "a"), under("lone", "nobody")]
    items += [under(f"n{depth}", f"n{depth - 1}" if depth else None) for depth in range(7)]
    kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})
    kubectl("wait", "sup", "--all", "--for=condition=Ready", "--timeout=30s")
    told = {"lone": ("ParentMissing", "nobody"), "n6": ("TooDeep", "n0"), "n5": ("Resolved", "")}
    for name, (reason, culprit) in (
        told | dict.fromkeys("abc", ("ParentCycle", "leads back"))
    ).items():
        path = "{.status.conditions[?(@.type=='ParentResolved')].reason}"
        kubectl.wait(f"sup/{name}", f"jsonpath={path}={reason}")
        found = kubectl.get("sup", name)["status"]
        said = next(one for one in found["conditions"] if one["type"] == "ParentResolved")
        assert culprit in said.get("message", "")
    assert kubectl.get("sup", "n6")["status"]["hierarchyLevel"] == 5


def test_a_failed_child_is_ordered_to_start_again_and_then_it_escalates(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    del operator
    kubectl = fake_kubectl
    desk = under("desk", None, childFailurePolicy="Restart", restart={"maxRestarts": 1})
    del desk["spec"]["agent"]
    trader = under("trader", "desk", restart={"maxRestarts": 0})
    items = [desk, trader]
    kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})
    kubectl.wait_status("trader", phase="ACTIVE")
    kubectl("label", "pod", "trader-r1", "fake.test/exit-code=3")
    kubectl.wait_status("trader", phase="ACTIVE", podName="trader-r2")
    kubectl("label", "pod", "trader-r2", "fake.test/exit-code=3")
    found = kubectl.wait_status("desk", phase="FAILED")
    outcome = found["status"]["outcome"]
    assert (outcome["reason"], outcome["child"]) == ("ChildFailed", "trader")
    assert kubectl.names("pods") == ["trader-r2"], "kept to be read"
    assert {"ChildFailed", "ChildOrdered"} <= set(kubectl.events("desk"))
