"""The operator dies before and after each of its writes; whoever follows comes to the same end.

Each story is told twice undisturbed: that gives the writes, and the end to compare with. Then it is
told again for every write, before it reaches the server and before its answer is known, with a
SIGKILL there and a new operator afterwards. Both oracles count: the same objects in the end, and
the same creates and deletes on the way; and the end must last while the next story is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import AGENT, a_supervisor, a_team
from tests.support.kubectl import Kubectl
from tests.support.stage import CUSTOM, KILLS, LOST, Stage
from tests.support.theatre import Story, Telling, Theatre, explore, open_theatre, tell

STAGES = 9
NONE = {"source": "None"}
BEAT = {"intervalSeconds": 1, "missedThreshold": 1}
QUICK = {"delaySeconds": 1, "maxDelaySeconds": 1}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
Step = Callable[[Stage, str], None]


def spawn(stage: Stage, name: str, **spec: Any) -> None:
    stage.ask("POST", f"{CUSTOM} supervisors", a_supervisor(name, **spec))


def plain(**spec: Any) -> Step:
    def prepare(stage: Stage, name: str) -> None:
        spawn(stage, name, heartbeat=NONE, **spec)
        stage.until_status(name, phase="ACTIVE")

    return prepare


def beating(stage: Stage, name: str) -> None:
    spawn(stage, name, heartbeat=BEAT, restart=QUICK)
    stage.join(f"{name}-r1")
    stage.until_status(name, phase="ACTIVE", health="HEALTHY")


def forget_rights(stage: Stage, _name: str) -> None:
    """As in a namespace that never had an agent."""
    stage.look_back()
    stage.operator.kill()
    for kind in ("rolebindings", "roles"):
        stage.ask("DELETE", f"{RBAC} {kind}/supervision-beats")
    stage.operator.start().ready()


def each(*steps: Step) -> Step:
    def act(stage: Stage, name: str) -> None:
        for step in steps:
            step(stage, name)

    return act


def become_active(run: int, who: str = "") -> Step:
    def finish(stage: Stage, name: str) -> None:
        stage.until_status(name + who, phase="ACTIVE", podName=f"{name}{who}-r{run}")

    return finish


def beat_and_become_active(run: int) -> Step:
    def finish(stage: Stage, name: str) -> None:
        stage.join(f"{name}-r{run}")
        stage.until_status(name, phase="ACTIVE", health="HEALTHY", podName=f"{name}-r{run}")

    return finish


def reach(phase: str, who: str = "") -> Step:
    return lambda stage, name: stage.until_status(name + who, phase=phase)


def exit_with_3(who: str = "", run: int = 1) -> Step:
    def act(stage: Stage, name: str) -> None:
        labels = {"metadata": {"labels": {"fake.test/exit-code": "3"}}}
        stage.ask("PATCH", f"/api/v1 pods/{name}{who}-r{run}", labels)

    return act


def evict(stage: Stage, name: str) -> None:
    status = {"status": {"phase": "Failed", "reason": "Evicted"}}
    stage.ask("PATCH", f"/api/v1 pods/{name}-r1/status", status)


def edit(**spec: Any) -> Step:
    return lambda stage, name: stage.edit(name, **spec)


def pause_and_resume(stage: Stage, name: str) -> None:
    stage.edit(name, operatingMode="Paused")
    stage.until_status(name, phase="PAUSED")
    stage.edit(name, operatingMode="Running")


def delete(stage: Stage, name: str) -> None:
    stage.ask("DELETE", f"{CUSTOM} supervisors/{name}")


def be_gone(who: str = "") -> Step:
    def finish(stage: Stage, name: str) -> None:
        path = f"/api/v1 pods/{name}{who}-r1"
        stage.until(lambda: not stage.ask("GET", path), lambda: f"{path} is still there")

    return finish


def member(name: str) -> dict[str, Any]:
    return {"name": name, "template": {"agent": AGENT}}


def crew(members: str, **spec: Any) -> Step:
    def prepare(stage: Stage, name: str) -> None:
        defaults = {"heartbeat": NONE, "restart": QUICK}
        item = a_team(name, members=list(map(member, members)), defaults=defaults, **spec)
        stage.ask("POST", f"{CUSTOM} supervisorteams", item)
        for one in members:
            become_active(1, f"-{one}")(stage, name)

    return prepare


def change_members(members: str) -> Step:
    def act(stage: Stage, name: str) -> None:
        spec = {"members": list(map(member, members))}
        stage.ask("PATCH", f"{CUSTOM} supervisorteams/{name}", {"spec": spec})

    return act


def family(policy: str) -> Step:
    """A boss without an agent, and a kid that may not restart by itself."""

    def prepare(stage: Stage, name: str) -> None:
        boss = a_supervisor(f"{name}-boss", childFailurePolicy=policy)
        del boss["spec"]["agent"]
        stage.ask("POST", f"{CUSTOM} supervisors", boss)
        never = QUICK | {"maxRestarts": 0}
        parent = {"name": f"{name}-boss"}
        spawn(stage, f"{name}-kid", heartbeat=NONE, restart=never, parentRef=parent)
        become_active(1, "-kid")(stage, name)

    return prepare


STORIES = (
    Story(
        "freeze",
        lambda stage, name: stage.fleet.freeze(f"{name}-r1"),
        beat_and_become_active(2),
        beating,
    ),
    Story(
        "create",
        lambda stage, name: spawn(stage, name, heartbeat=BEAT),
        beat_and_become_active(1),
        forget_rights,
    ),
    Story("crash and restart", exit_with_3(), become_active(2), plain(restart=QUICK)),
    Story("eviction", evict, become_active(2), plain()),
    Story("template change", edit(agent={"image": "localhost/agent:2"}), become_active(2), plain()),
    Story("restart request", edit(restartRequest="now"), become_active(2), plain()),
    Story("pause and resume", pause_and_resume, become_active(1), plain()),
    Story("stop", edit(operatingMode="Stopped"), reach("TERMINATED"), plain()),
    Story("delete", delete, be_gone(), plain()),
    Story(
        "budget exhausted",
        each(exit_with_3(), become_active(2), exit_with_3(run=2)),
        reach("FAILED"),
        plain(restart=QUICK | {"maxRestarts": 1}),
    ),
    Story(
        "group restart",
        exit_with_3("-b"),
        each(*(become_active(2, f"-{one}") for one in "abc")),
        crew("abc", restartStrategy="OneForAll"),
        rolls_up=True,
    ),
    Story(
        "member added, member removed",
        change_members("ac"),
        each(become_active(1, "-c"), be_gone("-b")),
        crew("ab"),
        rolls_up=True,
    ),
    Story(
        "child order",
        exit_with_3("-kid"),
        become_active(2, "-kid"),
        family("Restart"),
        rolls_up=True,
    ),
    Story(
        "escalation", exit_with_3("-kid"), reach("FAILED", "-boss"), family("Fail"), rolls_up=True
    ),
)


def references(theatre: Theatre) -> list[Telling]:
    told = [[theatre.submit(partial(tell, story=story)) for _ in range(2)] for story in STORIES]
    return [first.result().agree(second.result()) for first, second in told]


def explore_all(theatre: Theatre, ways: Sequence[str]) -> list[str]:
    """The names of all points, each of which has led to the end of its undisturbed story."""
    tellings = references(theatre)
    idle = {telling.story.name for telling in tellings if not telling.work}
    assert idle == {"delete", "pause and resume", "escalation"}, "in these it writes statuses only"
    tellings.sort(key=lambda telling: telling.story.rolls_up, reverse=True)  # the longest first
    points = [point for telling in tellings for point in telling.points(ways)]
    explored = [theatre.submit(partial(explore, point=point)) for point in points]
    errors = [error for one in explored if isinstance(error := one.exception(), Exception)]
    if errors:
        raise ExceptionGroup("points that lead elsewhere", errors)
    return [one.result() for one in explored]


@pytest.mark.timeout(600)
def test_every_crash_point_leads_to_the_same_end(
    fake_kubectl: Kubectl,
    operator_access: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with open_theatre(fake_kubectl, operator_access, tmp_path, STAGES) as theatre:
        names = explore_all(theatre, KILLS)
    with capsys.disabled():
        print(f"\n{len(names)} crash points", *names, sep="\n  ")
    assert sum("not reached" not in name for name in names) >= 100


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("how", ["409", "429", "500", "503", LOST])
def test_every_write_that_fails_once_leads_to_the_same_end(
    fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path, how: str
) -> None:
    with open_theatre(fake_kubectl, operator_access, tmp_path, STAGES) as theatre:
        assert len(explore_all(theatre, [how])) >= 50
