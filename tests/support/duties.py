"""What an operator must be asked to do before it has used every right it holds."""

from __future__ import annotations

import json
from typing import Any

from tests.support.builders import AGENT, a_supervisor, a_team
from tests.support.kubectl import Kubectl

NONE = {"source": "None"}
Json = dict[str, Any]


def pause_twice_and_stop(kubectl: Kubectl, agent: Json = AGENT) -> None:
    """What is told a second time is counted in the Event that is there."""
    kubectl.create(a_supervisor("plain", heartbeat=NONE, agent=agent))
    kubectl.wait_status("plain", phase="ACTIVE")
    for _ in range(2):
        for mode, phase in (("Paused", "PAUSED"), ("Running", "ACTIVE")):
            kubectl.patch("plain", {"operatingMode": mode})
            kubectl.wait_status("plain", phase=phase)
    kubectl.patch("plain", {"operatingMode": "Stopped"})
    kubectl.wait_status("plain", phase="TERMINATED")


def find_a_name_taken(kubectl: Kubectl, agent: Json = AGENT) -> None:
    kubectl("run", "taken-r1", "--image=localhost/stranger:1")
    kubectl.create(a_supervisor("taken", heartbeat=NONE, agent=agent))
    reason = "jsonpath={.status.conditions[?(@.type=='Stalled')].reason}=NameConflict"
    kubectl.wait("sup/taken", reason)


def run_a_team(kubectl: Kubectl, agent: Json = AGENT) -> None:
    """Two members are made, one is edited by hand and put back, one leaves."""
    both = [{"name": name, "template": {"agent": agent, "heartbeat": NONE}} for name in "ab"]
    kubectl.create(a_team(members=both))
    kubectl.create(a_team("orphans", supervisorRef={"name": "ghost"}, members=both))
    kubectl.wait("supteam/crew", "jsonpath={.status.readySummary}=2/2")
    kubectl.patch("crew-a", {"description": "by hand"})
    kubectl.wait("sup/crew-a", "jsonpath={.metadata.generation}=3")
    fewer = json.dumps({"spec": {"members": both[:1]}})
    kubectl("patch", "supteam", "crew", "--type=merge", "-p", fewer)
    kubectl.wait("sup/crew-b", "delete")
    unresolved = "jsonpath={.status.conditions[?(@.type=='SupervisorResolved')].status}=False"
    kubectl.wait("supteam/orphans", unresolved)
