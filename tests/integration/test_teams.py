"""Teams on a real API server: members made, restarted as a group, rolled up."""

from __future__ import annotations

import json
from typing import Any

from tests.support.builders import a_supervisor, a_team
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess

NONE = {"source": "None"}
QUICK = {"delaySeconds": 1, "maxDelaySeconds": 1}
AGENT = {"image": "localhost/agent:1"}


def member(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "template": {"agent": AGENT}} | fields


def crew(*members: dict[str, Any], **spec: Any) -> dict[str, Any]:
    defaults = {"heartbeat": NONE, "restart": QUICK}
    return a_team("crew", members=list(members), defaults=defaults, **spec)


def edit(kubectl: Kubectl, spec: dict[str, Any]) -> None:
    kubectl("patch", "supteam", "crew", "--type=merge", "-p", json.dumps({"spec": spec}))


def wait_team(kubectl: Kubectl, **fields: str) -> dict[str, Any]:
    for field, word in fields.items():
        kubectl.wait("supteam/crew", f"jsonpath={{.status.{field}}}={word}")
    status: dict[str, Any] = kubectl.get("supteam", "crew")["status"]
    return status


def test_a_team_is_made_scaled_and_taken_apart(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    kubectl = fake_kubectl
    kubectl.create(a_supervisor("boss", heartbeat=NONE))
    item = crew(
        member("lead", role="LEAD"),
        member("scout", replicas=2),
        supervisorRef={"name": "boss"},
        objective="find the way",
    )
    kubectl.create(item)
    status = wait_team(kubectl, readySummary="3/3", phase="ACTIVE")
    assert [stay["supervisor"] for stay in status["members"]] == [
        *("crew-lead", "crew-scout-1", "crew-scout-2")
    ]
    row = kubectl("get", "supteam", "crew", "--no-headers").out.split()
    assert row[:6] == ["crew", "boss", "ACTIVE", "3", "3/3", "0"]
    found = kubectl("get", "sup", "-l", "supervision.dev/team=crew", "-o", "name").out.split()
    assert len(found) == 3
    kubectl.wait("sup/boss", "jsonpath={.status.totalMembers}=3")

    uid = kubectl.get("sup", "crew-scout-1")["metadata"]["uid"]
    edit(kubectl, {"members": [member("lead", role="LEAD"), member("scout", replicas=1)]})
    status = wait_team(kubectl, readySummary="2/2")
    assert kubectl.get("sup", "crew-scout-1")["metadata"]["uid"] == uid
    assert [stay["supervisor"] for stay in status["members"] if "leftAt" in stay] == [
        "crew-scout-2"
    ]

    edit(kubectl, {"operatingMode": "Stopped"})
    kubectl.wait_status("crew-lead", phase="TERMINATED")
    edit(kubectl, {"operatingMode": "Running"})
    wait_team(kubectl, readySummary="2/2")
    kubectl("delete", "supteam", "crew", "--timeout=10s")
    kubectl("wait", "sup/crew-lead", "--for=delete", "--timeout=10s")
    kubectl("wait", "pods", "-l", "supervision.dev/supervisor=crew-lead", "--for=delete")
    assert "Traceback" not in operator.log
    assert "forbidden" not in operator.log.lower()


def test_one_for_all_on_a_real_server(operator: OperatorProcess, fake_kubectl: Kubectl) -> None:
    kubectl = fake_kubectl
    names = ["crew-a", "crew-b", "crew-c"]
    kubectl.create(crew(*map(member, "abc"), restartStrategy="OneForAll"))
    wait_team(kubectl, readySummary="3/3")
    kubectl("label", "pod", "crew-b-r1", "fake.test/exit-code=3")
    for name in names:
        kubectl.wait_status(name, podName=f"{name}-r2", phase="ACTIVE")
    status = wait_team(kubectl, readySummary="3/3")
    assert status["order"]["trigger"]["supervisor"] == "crew-b"
    assert status["order"]["members"] == names
    counted = {name: kubectl.get("sup", name)["status"]["restartSummary"] for name in names}
    assert counted == {"crew-a": "0/3", "crew-b": "1/3", "crew-c": "0/3"}
    pods = kubectl("get", "pods", "-o", "json").json["items"]
    started = {pod["metadata"]["name"]: pod["metadata"]["creationTimestamp"] for pod in pods}
    assert started["crew-a-r2"] <= started["crew-b-r2"] <= started["crew-c-r2"]
    assert "GroupRestart" in kubectl.events("crew")
    assert "Traceback" not in operator.log


def test_assigned_members_and_bad_references(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    del operator
    kubectl = fake_kubectl
    kubectl.create(a_supervisor("hello", heartbeat=NONE))
    kubectl.wait_status("hello", phase="ACTIVE")
    refs = [{"name": "x", "ref": {"name": "hello"}}, {"name": "y", "ref": {"name": "nobody"}}]
    kubectl.create(crew(*refs, member("a")))
    kubectl.wait_status("hello", **{"memberOf.team": "crew"})
    path = "{.status.conditions[?(@.type=='MembersResolved')].reason}"
    kubectl.wait("supteam/crew", f"jsonpath={path}=NotFound")
    assert kubectl.get("sup", "hello")["status"]["podName"] == "hello-r1"
    second = crew({"name": "z", "ref": {"name": "hello"}})
    second["metadata"]["name"] = "late"
    kubectl.create(second)
    kubectl.wait("supteam/late", f"jsonpath={path}=AlreadyAssigned")


def test_a_team_of_200_stays_small_and_one_change_costs_few_writes(
    operator: OperatorProcess, fake_kubectl: Kubectl
) -> None:
    kubectl = fake_kubectl
    kubectl.create(crew(member("a", replicas=200)))
    kubectl(
        "wait", "supteam/crew", "--for=jsonpath={.status.readySummary}=200/200", "--timeout=90s"
    )
    team = kubectl.get("supteam", "crew")
    assert len(json.dumps(team["status"])) < 100 * 1024

    def writes() -> int:
        lines = operator.get("/metrics").splitlines()
        chosen = [line for line in lines if "api_calls_total{" in line and "lease" not in line]
        verbs = ('verb="create"', 'verb="update"', 'verb="patch"', 'verb="delete"')
        return sum(int(float(line.split()[-1])) for line in chosen if any(v in line for v in verbs))

    before = writes()
    kubectl("label", "pod", "crew-a-7-r1", "fake.test/exit-code=3")
    kubectl.wait_status("crew-a-7", podName="crew-a-7-r2", phase="ACTIVE")
    wait_team(kubectl, readySummary="200/200")
    assert writes() - before <= 20
