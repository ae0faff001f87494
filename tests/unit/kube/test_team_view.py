"""A Supervisor as its team sees it: status and pods come on two watches, never at one moment."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from supervisor_operator.api.v1alpha1.team import TeamSpec
from supervisor_operator.api.v1alpha1.team_status import TeamOrder, TeamStatus
from supervisor_operator.core.observed import PodView
from supervisor_operator.core.pods import view_pod
from supervisor_operator.core.team.observed import AgentView
from supervisor_operator.core.team.orders import Line, link_of
from supervisor_operator.core.words import Label, Mark
from supervisor_operator.kube.agents import view_agent
from supervisor_operator.kube.cluster import SUPERVISORS, TEAMS
from supervisor_operator.kube.customs import Customs
from supervisor_operator.kube.family import Family, mode_of
from supervisor_operator.kube.store import Store
from supervisor_operator.kube.teams import Teams
from tests.support.builders import a_supervisor, a_team

WAITING = {"type": "Ready", "status": "False", "reason": "WaitingForTeam"}


def a_member(run: int) -> dict[str, Any]:
    """Its status tells that this run failed and that the team is to say what follows."""
    metadata = {
        "name": "crew-a",
        "uid": "uid-of-a",
        "resourceVersion": "7",
        "creationTimestamp": "2026-11-18T12:00:00Z",
    }
    status = {"run": run, "phase": "SPAWNING", "conditions": [WAITING]}
    return {"metadata": metadata, "spec": {}, "status": status}


def view(item: dict[str, Any], pods: Collection[PodView]) -> AgentView:
    return view_agent(item, pods, mode_of(item))


def a_pod(run: int, order: int) -> PodView:
    metadata = {"name": f"crew-a-r{run}", "uid": f"pod-{run}", "labels": {Label.RUN: str(run)}}
    return view_pod({"metadata": metadata | {"annotations": {Mark.ORDER: str(order)}}})


@pytest.mark.parametrize(
    ("pods", "waits"),
    [
        ((), True),
        ((a_pod(1, order=0),), True),
        ((a_pod(1, order=0), a_pod(2, order=1)), False),
    ],
    ids=["its pod is gone", "its pod ended", "its next pod is there already"],
)
def test_a_failure_is_the_teams_to_answer_until_there_is_a_newer_pod(
    pods: tuple[PodView, ...], *, waits: bool
) -> None:
    assert view(a_member(run=1), pods).waiting is waits


@pytest.mark.parametrize(
    ("pods", "order"),
    [
        ((a_pod(1, order=3), a_pod(2, order=4)), 4),
        ((a_pod(1, order=3),), 5),
        ((), 5),
        ((a_pod(3, order=6),), 6),
    ],
    ids=["its pod tells", "only an older pod is kept", "its pod is gone", "status is behind"],
)
def test_the_order_of_the_newest_run_is_known_when_its_pod_is_gone(
    pods: tuple[PodView, ...], order: int
) -> None:
    item = a_member(run=2)
    item["status"]["memberOf"] = {"team": "crew", "member": "a", "order": 5}
    assert view(item, pods).order == order


def test_a_new_pod_is_not_up_by_what_status_says_of_the_one_before() -> None:
    item = a_member(run=1)
    item["status"] |= {"phase": "ACTIVE", "lastRestartTime": "2026-11-18T12:00:00Z"}
    now = datetime(2026, 11, 18, 13, tzinfo=UTC)
    order = TeamOrder(id=1, time=now, reason="MemberFailed", members=["crew-a", "crew-b"])
    spec = TeamSpec.model_validate({"restartStrategy": "OneForAll"})
    second = replace(view(a_member(run=1), ()), name="crew-b")

    def may_start(*pods: PodView) -> bool:
        agents = (view(item, pods), second)
        line = Line(spec, TeamStatus(order=order), agents, now)
        return link_of(line, "crew-b", team="crew", member="b", role="MEMBER").may_start

    assert not may_start(a_pod(2, order=1)), "its startupSeconds are over only by the old run"
    item["status"]["run"] = 2
    assert may_start(a_pod(2, order=1))


def test_a_restart_holds_its_slot_before_status_tells_of_it() -> None:
    item = a_member(run=1)
    item["status"] |= {"lastRestartTime": "2026-11-18T12:00:00Z", "restarts": 0}
    pod = replace(a_pod(2, order=0), restarts=1)
    second = replace(view(a_member(run=1), ()), name="crew-b")
    now = datetime(2026, 11, 18, 13, tzinfo=UTC)
    line = Line(TeamSpec(), TeamStatus(), (view(item, [pod]), second), now)
    assert not link_of(line, "crew-b", team="crew", member="b", role="MEMBER").has_slot


def stored(item: dict[str, Any], created: str, status: dict[str, Any]) -> dict[str, Any]:
    name = item["metadata"]["name"]
    metadata = {
        "namespace": "default",
        "uid": f"uid-of-{name}",
        "resourceVersion": "1",
        "creationTimestamp": f"2026-11-18T{created}Z",
    }
    return item | {"metadata": item["metadata"] | metadata, "status": status}


def a_claim(team: str, *, joined: str = "", created: str = "12:00:00") -> dict[str, Any]:
    """A team that names the Supervisor `hello`, and since when it was a member, if it was."""
    stays = [{"name": "x", "supervisor": "hello", "joinedAt": f"2026-11-18T{joined}Z"}]
    item = a_team(team, members=[{"name": "x", "ref": {"name": "hello"}}])
    return stored(item, created, {"members": stays} if joined else {})


OWNER = {"kind": "SupervisorTeam", "name": "crew", "uid": "uid-of-crew", "controller": True}


@pytest.mark.parametrize(
    ("owners", "team", "is_left_over"),
    [
        ([OWNER], {}, False),
        ([], {}, False),
        ([OWNER | {"uid": "of a former one"}], {}, True),
        ([OWNER], {"deletionTimestamp": "2026-11-18T12:00:00Z"}, True),
        ([OWNER], None, True),
        ([], None, False),
        ([OWNER | {"kind": "Deployment"}], None, False),
    ],
    ids=["owned", "free", "former team", "team going", "team gone", "orphan", "owned by others"],
)
def test_what_a_team_leaves_over_is_the_garbage_collectors(
    owners: list[dict[str, Any]],
    team: dict[str, Any] | None,
    is_left_over: bool,  # noqa: FBT001
) -> None:
    supervisors, items = (Customs(kind, lambda _: None) for kind in (SUPERVISORS, TEAMS))
    pods: Store[PodView] = Store(view_pod, lambda pod: pod.owner)
    teams = Teams(items, supervisors, pods, Family(supervisors, pods))
    if team is not None:
        item = stored(a_team("crew", members=[]), "12:00:00", {})
        item["metadata"] |= team
        items.take(None, item)
    agent = stored(a_supervisor("crew-a"), "12:00:00", {})
    agent["metadata"]["ownerReferences"] = owners
    assert teams.is_left_over(agent) is is_left_over


@pytest.mark.parametrize("mode", ["Paused", "Stopped"])
def test_the_mode_of_a_member_is_that_of_its_parent_too(mode: str) -> None:
    supervisors, items = (Customs(kind, lambda _: None) for kind in (SUPERVISORS, TEAMS))
    pods: Store[PodView] = Store(view_pod, lambda pod: pod.owner)
    family = Family(supervisors, pods)
    teams = Teams(items, supervisors, pods, family)
    team = a_claim("crew")
    items.take(None, team)
    teams.note(("default", "crew"))
    for name, spec in (("boss", {}), ("hello", {"parentRef": {"name": "boss"}})):
        supervisors.take(None, stored(a_supervisor(name, **spec), "12:00:00", {}))
        family.note(("default", name))
    assert teams.observe(("default", "crew"), team).agents["hello"].mode == "Running"
    boss = stored(a_supervisor("boss", operatingMode=mode), "12:00:00", {})
    boss["metadata"] |= {"resourceVersion": "2", "generation": 2}
    supervisors.take("MODIFIED", boss)
    assert teams.observe(("default", "crew"), team).agents["hello"].mode == mode


def test_a_supervisor_of_a_members_name_is_no_member_unless_it_is_owned() -> None:
    """A stopped team would stop it, and its failures would wait for an order for ever."""
    supervisors, items = (Customs(kind, lambda _: None) for kind in (SUPERVISORS, TEAMS))
    pods: Store[PodView] = Store(view_pod, lambda pod: pod.owner)
    teams = Teams(items, supervisors, pods, Family(supervisors, pods))
    template = {"name": "a", "template": {"agent": {"image": "a"}}}
    named = a_team("other", members=[{"name": "x", "ref": {"name": "crew-a"}}])
    for item in (a_team("crew", members=[template], operatingMode="Stopped"), named):
        items.take(None, stored(item, "12:00:00", {}))
    stranger = stored(a_supervisor("crew-a"), "12:00:00", {})
    supervisors.take(None, stranger)
    now = datetime(2026, 11, 18, 13, tzinfo=UTC)
    teams.note(("default", "crew"))
    assert teams.link(stranger, now) is None
    teams.note(("default", "other"))
    link = teams.link(stranger, now)
    assert link is not None
    assert (link.team, link.mode) == ("other", "Running")
    owned = stranger | {"metadata": stranger["metadata"] | {"ownerReferences": [OWNER]}}
    supervisors.take(None, owned)
    link = teams.link(owned, now)
    assert link is not None
    assert (link.team, link.mode) == ("crew", "Stopped")


def holder(*claims: dict[str, Any], member_of: str = "") -> str | None:
    """The team that `hello` belongs to."""
    supervisors, items = (Customs(kind, lambda _: None) for kind in (SUPERVISORS, TEAMS))
    status = {"memberOf": {"team": member_of}} if member_of else {}
    hello = stored(a_supervisor("hello"), "12:00:00", status)
    supervisors.take(None, hello)
    pods: Store[PodView] = Store(view_pod, lambda pod: pod.owner)
    teams = Teams(items, supervisors, pods, Family(supervisors, pods))
    for claim in claims:
        items.take(None, claim)
        teams.note(("default", claim["metadata"]["name"]))
    link = teams.link(hello, datetime(2026, 11, 18, 13, tzinfo=UTC))
    return link.team if link else None


@pytest.mark.parametrize(
    ("claims", "member_of", "winner"),
    [
        ([a_claim("b", joined="12:00:05"), a_claim("a", joined="12:00:09")], "", "b"),
        ([a_claim("a", created="12:00:09"), a_claim("b", joined="12:30:00")], "", "b"),
        ([a_claim("a", created="12:00:09"), a_claim("b", created="12:00:05")], "", "b"),
        ([a_claim("b"), a_claim("a")], "", "a"),
        ([a_claim("a", joined="12:00:05"), a_claim("b")], "b", "b"),
        ([a_claim("a")], "b", "a"),
        ([], "b", None),
    ],
    ids=[
        *("oldest joinedAt", "a member before a newcomer", "then the older team"),
        *("then the name", "memberOf survives a wiped team", "a team that let go is out", "none"),
    ],
)
def test_ref_assignment(claims: list[dict[str, Any]], member_of: str, winner: str | None) -> None:
    assert holder(*claims, member_of=member_of) == winner
