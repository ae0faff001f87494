"""What people and accidents do to teams: each is told by name, and the others run on."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.api_call import Call
from tests.support.behind_proxy import behind_proxy
from tests.support.builders import AGENT, a_supervisor, a_team
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess

NONE = {"source": "None"}
QUICK = {"delaySeconds": 1, "maxDelaySeconds": 1}
Json = dict[str, Any]


def member(name: str, **fields: Any) -> Json:
    return {"name": name, "template": {"agent": AGENT}} | fields


def team(name: str, *members: Json, **spec: Any) -> Json:
    defaults = {"heartbeat": NONE, "restart": QUICK}
    return a_team(name, members=list(members), defaults=defaults, **spec)


class Crew:
    """One team on the cluster, and what is asked of it."""

    def __init__(self, kubectl: Kubectl, name: str) -> None:
        self.kubectl = kubectl
        self.name = name

    def create(self, *members: Json, **spec: Any) -> Crew:
        self.kubectl.create(team(self.name, *members, **spec))
        return self

    def edit(self, **spec: Any) -> None:
        patch = json.dumps({"spec": spec})
        self.kubectl("patch", "supteam", self.name, "--type=merge", "-p", patch)

    def wait(self, path: str, word: str) -> None:
        self.kubectl.wait(f"supteam/{self.name}", f"jsonpath={{.status.{path}}}={word}")

    def wait_condition(self, kind: str, reason: str) -> str:
        """Returns the message."""
        chosen = f"conditions[?(@.type=='{kind}')]"
        self.wait(f"{chosen}.reason", reason)
        found = self.kubectl.get("supteam", self.name)["status"]["conditions"]
        return next(str(one.get("message")) for one in found if one["type"] == kind)

    def active(self, who: str, run: int = 1) -> Json:
        name = f"{self.name}-{who}"
        return self.kubectl.wait_status(name, podName=f"{name}-r{run}", phase="ACTIVE")

    def fail(self, who: str, run: int = 1) -> None:
        self.kubectl("label", "pod", f"{self.name}-{who}-r{run}", "fake.test/exit-code=3")


@pytest.fixture
def crew(operator: OperatorProcess, fake_kubectl: Kubectl) -> Callable[[str], Crew]:
    del operator
    return lambda name: Crew(fake_kubectl, name)


Crews = Callable[[str], Crew]


def test_names_that_collide_and_refs_that_are_taken(crew: Crews, fake_kubectl: Kubectl) -> None:
    first = crew("x").create(member("y-z"))
    first.active("y-z")
    second = crew("x-y").create(
        member("z"), {"name": "theirs", "ref": {"name": "x-y-z"}}, member("own")
    )
    said = second.wait_condition("MembersResolved", "NameConflict")
    assert "Supervisor x-y-z" in said
    second.active("own")
    second.edit(members=[{"name": "theirs", "ref": {"name": "x-y-z"}}, member("own")])
    said = second.wait_condition("MembersResolved", "AlreadyAssigned")
    assert "x-y-z belongs to team x already" in said
    assert fake_kubectl.get("sup", "x-y-z")["status"]["memberOf"]["team"] == "x"
    assert "AlreadyAssigned" in fake_kubectl.events("x-y")


def test_a_template_that_the_server_refuses_is_named(crew: Crews) -> None:
    bad = {"agent": {"template": {"spec": {"containers": [{"name": "agent"}]}}}}
    crew("t").create(member("bad", template=bad), member("good"))
    found = crew("t")
    found.active("good")
    said = found.wait_condition("Ready", "Degraded")
    assert "t-bad" in said
    found.kubectl.wait_status("t-bad", phase="FAILED")
    found.edit(members=[member("bad"), member("good")])
    found.active("bad")
    found.wait("readySummary", "2/2")


def test_a_supervisor_that_the_server_refuses_is_named_until_it_may_be_made(
    fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path
) -> None:
    with behind_proxy(fake_kubectl, operator_access, tmp_path) as troubled:
        found = Crew(fake_kubectl, "t").create(member("good"))
        found.active("good")
        refusal = troubled.proxy.refuse(makes_a_supervisor, 403, "exceeded quota: few", times=None)
        found.edit(members=[member("bad"), member("good")])
        said = found.wait_condition("MembersResolved", "Refused")
        assert said == "Supervisor t-bad was refused: exceeded quota: few"
        assert found.active("good")["status"]["restarts"] == 0
        refusal.times = 0
        found.wait("readySummary", "2/2")
        found.active("bad")
        found.wait_condition("MembersResolved", "Resolved")


def makes_a_supervisor(call: Call) -> bool:
    return (call.verb, call.plural) == ("create", "supervisors")


def test_replicas_absent_one_two_and_one_again(crew: Crews, fake_kubectl: Kubectl) -> None:
    found = crew("t").create(member("a"), member("b"))
    found.active("b")
    uids = []
    for replicas, others in ((1, 0), (2, 1), (1, 0)):
        found.edit(members=[member("a", replicas=replicas), member("b")])
        found.wait("readySummary", f"{others + 2}/{others + 2}")
        there = [f"t-a-{number}" for number in range(1, replicas + 1)]
        assert fake_kubectl.names("sup") == [*there, "t-b"]
        uids.append(fake_kubectl.get("sup", "t-a-1")["metadata"]["uid"])
    assert len(set(uids)) == 1
    assert found.active("b")["status"]["restarts"] == 0
    stays = fake_kubectl.get("supteam", "t")["status"]["members"]
    assert [one["supervisor"] for one in stays if "leftAt" in one] == ["t-a", "t-a-2"]


def test_a_supervisor_that_is_two_members_and_a_breaker_of_0_percent(crew: Crews) -> None:
    found = crew("t").create(
        *(member("a"), member("b"), {"name": "twin", "ref": {"name": "t-a"}}),
        restartStrategy="OneForAll",
        maxUnhealthy="0%",
    )
    said = found.wait_condition("MembersResolved", "NameConflict")
    assert said == "Supervisor t-a is member a already: rename or remove member twin"
    found.wait("readySummary", "2/2")
    found.fail("b")
    said = found.wait_condition("RemediationAllowed", "TooManyUnhealthy")
    assert said.endswith("maxUnhealthy 0%: nobody is restarted; t-b")
    assert found.active("a")["status"]["restarts"] == 0
    found.edit(maxUnhealthy=None)
    found.active("a", run=2)
    found.active("b", run=2)


def test_edited_by_hand_deleted_by_hand_and_on_call(crew: Crews, fake_kubectl: Kubectl) -> None:
    found = crew("t").create(member("a"), member("b"))
    first = found.active("a")
    fake_kubectl.patch("t-a", {"operatingMode": "Paused", "agent": {"image": "localhost/other:1"}})
    fake_kubectl.wait("sup/t-a", "jsonpath={.spec.agent.image}=localhost/agent:1")
    paused = fake_kubectl.wait_status("t-a", phase="PAUSED")
    assert paused["spec"]["operatingMode"] == "Paused", "that is whoever is on call's to say"
    assert paused["status"]["podName"] == "t-a-r1"
    fake_kubectl("delete", "sup", "t-a")
    found.wait("members[?(@.leftAt)].supervisor", "t-a")
    again = found.active("a")
    assert again["metadata"]["uid"] != first["metadata"]["uid"]
    assert again["spec"]["operatingMode"] == "Running"
    assert found.active("b")["status"]["restarts"] == 0


def test_a_second_failure_and_a_pause_during_an_order(crew: Crews) -> None:
    found = crew("t").create(*map(member, "abcd"), restartStrategy="OneForAll")
    found.wait("readySummary", "4/4")
    found.kubectl.patch("t-d", {"operatingMode": "Paused"})
    found.kubectl.wait_status("t-d", phase="PAUSED")
    found.fail("b")
    found.wait("order.id", "1")
    found.kubectl.ask("label", "pod", "t-c-r1", "fake.test/exit-code=3")
    for who in "abc":
        found.active(who, run=2)
    order = found.kubectl.get("supteam", "t")["status"]["order"]
    assert (order["id"], order["members"]) == (1, ["t-a", "t-b", "t-c"])
    assert found.kubectl.get("sup", "t-d")["status"]["podName"] == "t-d-r1"


def test_a_team_deleted_while_it_restarts_leaves_nothing(
    crew: Crews, fake_kubectl: Kubectl, operator: OperatorProcess
) -> None:
    found = crew("t").create(*map(member, "abc"), restartStrategy="OneForAll")
    found.wait("readySummary", "3/3")
    found.fail("b")
    found.wait("order.id", "1")
    fake_kubectl("delete", "supteam", "t", "--timeout=10s")
    for kind in ("sup", "pods", "heartbeats"):
        fake_kubectl("wait", kind, "--all", "--for=delete", "--timeout=30s")
    assert [fake_kubectl.names(kind) for kind in ("sup", "pods")] == [[], []]
    assert "Traceback" not in operator.log


@pytest.mark.parametrize("cascade", ["foreground", "background"])
def test_a_stopped_team_that_is_deleted_starts_nobody_on_its_way_out(
    fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path, cascade: str
) -> None:
    with behind_proxy(fake_kubectl, operator_access, tmp_path, "--resync-seconds=0.5") as troubled:
        members = member("a", replicas=20)
        found = Crew(fake_kubectl, "t").create(members, operatingMode="Stopped")
        found.wait("memberCount", "20")
        found.wait("phase", "TERMINATED")
        fake_kubectl("delete", "supteam", "t", f"--cascade={cascade}", "--timeout=20s")
        fake_kubectl("wait", "sup", "--all", "--for=delete", "--timeout=20s")
        assert troubled.creates("pods") == 0


def test_orphans_are_ordinary_supervisors(
    crew: Crews, fake_kubectl: Kubectl, operator: OperatorProcess
) -> None:
    found = crew("t").create(member("a"), operatingMode="Running")
    uid = found.active("a")["metadata"]["uid"]
    fake_kubectl("delete", "supteam", "t", "--cascade=orphan", "--timeout=20s")
    operator.until(lambda: "memberOf" not in fake_kubectl.get("sup", "t-a")["status"])
    orphan = fake_kubectl.get("sup", "t-a")
    assert "ownerReferences" not in orphan["metadata"]
    assert (orphan["metadata"]["uid"], orphan["status"]["podName"]) == (uid, "t-a-r1")
    found.fail("a")
    found.active("a", run=2)
    found.create(member("a"), member("b"))
    assert "t-a" in found.wait_condition("MembersResolved", "NameConflict")
    found.active("b")
    assert "memberOf" not in fake_kubectl.get("sup", "t-a")["status"], "a name makes no member"
    found.edit(members=[{"name": "a", "ref": {"name": "t-a"}}, member("b")])
    found.wait_condition("MembersResolved", "Resolved")
    assert fake_kubectl.get("sup", "t-a")["metadata"]["uid"] == uid


def test_a_supervisor_that_returns_in_time_stops_nobody(crew: Crews, fake_kubectl: Kubectl) -> None:
    fake_kubectl.create(a_supervisor("boss", heartbeat=NONE))
    found = crew("t").create(member("a"), supervisorRef={"name": "boss"})
    found.active("a")
    fake_kubectl.wait_status("boss", totalMembers="1")
    fake_kubectl("delete", "sup", "boss")
    said = found.wait_condition("SupervisorResolved", "SupervisorGone")
    assert "There is no Supervisor boss" in said
    fake_kubectl.create(a_supervisor("boss", heartbeat=NONE))
    found.wait_condition("SupervisorResolved", "Resolved")
    assert found.active("a")["status"]["restarts"] == 0
    fake_kubectl.wait_status("boss", totalMembers="1")
    fake_kubectl.patch("boss", {"operatingMode": "Stopped"})
    fake_kubectl.wait_status("boss", phase="TERMINATED")
    found.wait_condition("SupervisorResolved", "Resolved")
    assert found.active("a")["status"]["podName"] == "t-a-r1", "stopped is not gone"


@pytest.mark.soak
def test_a_supervisor_that_stays_away_stops_the_members_until_it_returns(
    crew: Crews, fake_kubectl: Kubectl, operator: OperatorProcess
) -> None:
    fake_kubectl.create(a_supervisor("boss", heartbeat=NONE))
    found = crew("t").create(member("a"), supervisorRef={"name": "boss"})
    found.active("a")
    fake_kubectl("delete", "sup", "boss")
    found.wait_condition("SupervisorResolved", "SupervisorGone")
    operator.until(lambda: fake_kubectl.get("sup", "t-a")["status"]["phase"] == "TERMINATED")
    assert fake_kubectl.names("sup") == ["t-a"], "nothing of the user's is deleted"
    team = fake_kubectl.get("supteam", "t")
    gone = next(one for one in team["status"]["conditions"] if one["type"] == "SupervisorResolved")
    stopped = fake_kubectl.get("sup", "t-a")["status"]["conditions"]
    since = next(one for one in stopped if one["type"] == "Ready")["lastTransitionTime"]
    waited = datetime.fromisoformat(since) - datetime.fromisoformat(gone["lastTransitionTime"])
    assert waited.total_seconds() >= 29
    fake_kubectl.create(a_supervisor("boss", heartbeat=NONE))
    found.active("a", run=2)


def test_a_team_led_by_its_own_member_is_told(crew: Crews) -> None:
    found = crew("t").create(member("a"), member("b"), supervisorRef={"name": "t-a"})
    assert "t-a is a member" in found.wait_condition("SupervisorResolved", "SupervisorIsMember")
    found.wait("readySummary", "2/2")
