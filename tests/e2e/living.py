"""Supervisors of real agents in the sample image, quick to be judged, and looks at how they do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.cluster.images import SAMPLE_AGENT
from tests.support.builders import a_supervisor
from tests.support.kubectl import Kubectl

INTERVAL = 2
ALLOWED = 4 * INTERVAL
GRACE = 2
AGENT = "/agents/agent.py"
QUICK = {"delaySeconds": 1, "maxDelaySeconds": 2}
RELAY = "supervision-relay"
WAIT_SECONDS = 60.0
LOOK_SECONDS = 0.1


def an_agent(name: str, *command: str, **spec: Any) -> dict[str, Any]:
    """A Supervisor whose agent beats every second, if the command does not say otherwise."""
    agent = {
        "image": SAMPLE_AGENT,
        "command": list(command or (AGENT, "beat")),
        "terminationGracePeriodSeconds": GRACE,
    }
    beat = {"intervalSeconds": INTERVAL} | spec.pop("heartbeat", {})
    restart = QUICK | spec.pop("restart", {})
    return a_supervisor(name, agent=agent, heartbeat=beat, restart=restart, **spec)


def a_template(container: dict[str, Any] | None = None, **pod: Any) -> dict[str, Any]:
    """The long form of the same agent, with fields of its own."""
    own = {"name": "agent", "image": SAMPLE_AGENT, "command": [AGENT, "beat"]} | (container or {})
    spec = {"terminationGracePeriodSeconds": GRACE, "containers": [own]} | pod
    return {"template": {"spec": spec}}


def create_all(kubectl: Kubectl, *items: dict[str, Any]) -> None:
    kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})


def status(kubectl: Kubectl, name: str) -> dict[str, Any]:
    found: dict[str, Any] = kubectl.get("sup", name)["status"]
    return found


def condition(kubectl: Kubectl, name: str, kind: str = "Ready") -> dict[str, str]:
    """A condition of a Supervisor; empty where there is none yet."""
    found = status(kubectl, name).get("conditions", [])
    return next((one for one in found if one["type"] == kind), {})


def sequence(kubectl: Kubectl, pod: str) -> int:
    """How many beats have arrived from a pod."""
    return int(kubectl.get("hb", pod).get("status", {}).get("sequence", 0))


def beats_again(kubectl: Kubectl, name: str) -> None:
    """Two more beats arrive, and the operator sees them."""
    before, seen = sequence(kubectl, f"{name}-r1"), status(kubectl, name)["lastHeartbeatTime"]
    until(lambda: sequence(kubectl, f"{name}-r1") > before + 1, f"beats of {name}")
    until(lambda: status(kubectl, name)["lastHeartbeatTime"] > seen, f"the operator sees {name}")
    until(lambda: status(kubectl, name)["health"] == "HEALTHY", f"{name} is healthy")


def incarnations(kubectl: Kubectl) -> dict[str, tuple[str, int]]:
    """Each pod's UID, and how often its agent's container was started again."""
    items = kubectl("get", "pods", "-o", "json").json["items"]
    return {
        item["metadata"]["name"]: (
            item["metadata"]["uid"],
            item["status"]["containerStatuses"][0]["restartCount"],
        )
        for item in items
    }


def until(condition: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> float:
    """Wait for it; returns the seconds it took."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, f"not within {seconds:g} s: {what}"
        time.sleep(LOOK_SECONDS)
    return time.monotonic() - started
