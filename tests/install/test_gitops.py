"""GitOps stays quiet: what was applied is what is there, however long agents beat."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.builders import AGENT, a_supervisor, a_team, an_object
from tests.support.fleet import beating
from tests.support.kubectl import Kubectl

BEATS = {"intervalSeconds": 1}
IGNORE = "argocd.argoproj.io/ignore-resource-updates"


def applied() -> list[dict[str, Any]]:
    template = {
        "agent": AGENT,
        "heartbeat": BEATS | {"missedThreshold": 1},
        "restart": {"delaySeconds": 1},
    }
    member = {"name": "member", "template": template}
    return [
        a_supervisor("hello", heartbeat=BEATS, config={"limits": {"daily": 1}}),
        an_object("Supervisor", "desk", {"description": "no pod of its own"}),
        a_team(members=[member], supervisorRef={"name": "hello"}),
    ]


@pytest.mark.parametrize("way", ["--server-side=false", "--server-side=true"])
@pytest.mark.usefixtures("operator")
def test_there_is_no_difference_after_beats_and_restarts(fake_kubectl: Kubectl, way: str) -> None:
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": applied()})
    fake_kubectl("apply", way, "-f", "-", stdin=items)
    pods = ["hello-r1", "crew-member-r1"]
    for pod in pods:
        fake_kubectl.wait(f"heartbeat/{pod}", "create")
    with beating(fake_kubectl, pods, 0.5) as fleet:
        before = fake_kubectl.wait_status("hello", phase="ACTIVE")["status"]["lastHeartbeatTime"]
        fleet.freeze("crew-member-r1")
        fake_kubectl.wait("pod/crew-member-r2", "create")
        shown = fake_kubectl.get("sup", "hello")["status"]["lastHeartbeatTime"]
        assert shown != before, "the column moves"
        answer = fake_kubectl.ask("diff", way, "-f", "-", stdin=items)
    assert (answer.code, answer.out, answer.err) == (0, "", "")


@pytest.mark.usefixtures("operator")
def test_beats_are_no_reason_for_argo_cd_to_look_again(fake_kubectl: Kubectl) -> None:
    own = {"metadata": {"annotations": {IGNORE: "false"}}}
    spec = {"containers": [{"name": "agent"} | AGENT]}
    fake_kubectl.create(a_supervisor(heartbeat=BEATS))
    fake_kubectl.create(a_supervisor("seen", agent={"template": own | {"spec": spec}}))
    fake_kubectl.wait("heartbeat/hello-r1", "create")
    for kind in ("pod", "heartbeat"):
        found = fake_kubectl.get(kind, "hello-r1")["metadata"]["annotations"]
        assert found[IGNORE] == "true"
    fake_kubectl.wait("pod/seen-r1", "create")
    annotations = fake_kubectl.get("pod", "seen-r1")["metadata"]["annotations"]
    assert annotations[IGNORE] == "false", "the user's own word wins"
