"""Argo CD's view: its Lua scripts on every state the operator can show, run by a real Lua 5.1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from supervisor_operator.api.v1alpha1.meta import GROUP
from supervisor_operator.kube.report import dump_status
from tests.cluster.places import CHECKOUT
from tests.support.argocd import FOLDER, SUPERVISOR, Json, acted, as_object, recorded
from tests.support.lua import run_lua
from tests.support.sim import Sim
from tests.support.team_sim import TeamSim, member
from tests.unit.core.test_states import ROWS
from tests.unit.core.test_teams import crew

HEALTH = SUPERVISOR / "health.lua"
ACTIONS = SUPERVISOR / "actions"
SHOWN = {
    "new, unseen": "Progressing",
    "starting": "Progressing",
    "running": "Healthy",
    "running without beats": "Healthy",
    "unresponsive, remedy coming": "Degraded",
    "unresponsive, MarkOnly": "Degraded",
    "unresponsive, RelayDown": "Degraded",
    "remedy withheld": "Degraded",
    "back-off": "Degraded",
    "budget used up": "Degraded",
    "pending": "Progressing",
    "pending after the progress deadline": "Degraded",
    "template refused, old pod well": "Degraded",
    "pod stuck terminating": "Progressing",
    "paused": "Suspended",
    "paused, agent dead": "Suspended",
    "stopped": "Suspended",
    "finished": "Healthy",
}


GITOPS = CHECKOUT / "manifests/gitops"


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


HEALTH_TESTS = load(SUPERVISOR / "health_test.yaml")["tests"]
ACTION_TESTS = load(ACTIONS / "action_test.yaml")


def given_up() -> TeamSim:
    never = {"restart": {"maxRestarts": 0}}
    return TeamSim(member("a", template=never)).settle().start().crash("crew-a")


TEAMS: list[tuple[str, Callable[[], TeamSim], str]] = [
    ("unseen", TeamSim, "Progressing"),
    ("starting", lambda: TeamSim(member("a")).settle(), "Progressing"),
    ("well", crew, "Healthy"),
    ("one in back-off", lambda: crew().crash("crew-a"), "Degraded"),
    ("all given up", given_up, "Degraded"),
    ("paused", lambda: crew().edit(operatingMode="Paused"), "Suspended"),
    ("stopped", lambda: crew().edit(operatingMode="Stopped").reap(), "Suspended"),
]


@pytest.mark.parametrize(("row", "story"), [row[:2] for row in ROWS], ids=[row[0] for row in ROWS])
def test_each_state_has_its_health(row: str, story: Callable[[], Sim]) -> None:
    assert run_lua(HEALTH, as_object(story()))["status"] == SHOWN[row]


@pytest.mark.parametrize(
    ("story", "shown"), [row[1:] for row in TEAMS], ids=[row[0] for row in TEAMS]
)
def test_each_state_of_a_team_has_its_health(story: Callable[[], TeamSim], shown: str) -> None:
    team = story()
    metadata = {"name": "crew", "generation": team.generation}
    item = {"metadata": metadata, "spec": team.spec_json, "status": dump_status(team.status)}
    assert run_lua(FOLDER / "SupervisorTeam/health.lua", item)["status"] == shown


@pytest.mark.parametrize("case", HEALTH_TESTS, ids=lambda case: case["inputPath"])
def test_the_recorded_objects_have_their_health_and_message(case: Json) -> None:
    assert run_lua(HEALTH, load(SUPERVISOR / case["inputPath"])) == case["healthStatus"]


def said(item: Json) -> tuple[Any, ...]:
    status = item["status"]
    conditions = status.get("conditions", ())
    shown = sorted((one["type"], one["status"], one["reason"]) for one in conditions)
    return status.get("phase"), status.get("health"), shown


def test_the_recorded_objects_are_what_the_operator_shows_today() -> None:
    """Else `python -m tests.support.argocd` writes them anew."""
    now = recorded()
    assert {case["inputPath"] for case in HEALTH_TESTS} == now.keys()
    for name, item in now.items():
        assert said(load(SUPERVISOR / name)) == said(item), name


@pytest.mark.parametrize("case", ACTION_TESTS["discoveryTests"], ids=lambda case: case["inputPath"])
def test_what_may_be_done_depends_on_the_mode(case: Json) -> None:
    found = run_lua(ACTIONS / "discovery.lua", load(ACTIONS / case["inputPath"]))
    assert found == {one["name"]: {"disabled": one["disabled"]} for one in case["result"]}


@pytest.mark.parametrize("case", ACTION_TESTS["actionTests"], ids=lambda case: case["action"])
def test_an_action_changes_the_spec_and_nothing_else(case: Json) -> None:
    before = load(ACTIONS / case["inputPath"])
    after = acted(case["action"], before)
    assert after == load(ACTIONS / case["expectedOutputPath"])
    fields = ("operatingMode", "restartRequest")
    changed = {field for field in fields if after["spec"].get(field) != before["spec"].get(field)}
    assert len(changed) == 1
    for field in fields:
        after["spec"].pop(field, None)
        before["spec"].pop(field, None)
    assert after == before


def test_every_action_is_tried() -> None:
    there = {path.parent.name for path in ACTIONS.glob("*/action.lua")}
    assert {case["action"] for case in ACTION_TESTS["actionTests"]} == there


def test_the_config_map_has_the_scripts() -> None:
    data = load(GITOPS / "argocd/argocd-cm.yaml")["data"]
    for kind in ("Supervisor", "SupervisorTeam"):
        assert data[f"resource.customizations.health.{GROUP}_{kind}"] == HEALTH.read_text()
        actions = yaml.safe_load(data[f"resource.customizations.actions.{GROUP}_{kind}"])
        assert {one["name"] for one in actions["definitions"]} == {
            "pause",
            "resume",
            "stop",
            "restart",
        }


@pytest.mark.parametrize("file", ["argocd/application.yaml", "flux/sync.yaml"])
def test_samples_bring_the_operator_and_then_the_agents(file: str) -> None:
    operator, agents = yaml.safe_load_all((GITOPS / file).read_text())
    paths = [one["spec"].get("path") or one["spec"]["source"]["path"] for one in (operator, agents)]
    assert Path(paths[0]) == Path("manifests/overlays/cluster")
    assert (CHECKOUT / paths[0]).is_dir()
    assert Path(paths[1]) == Path("agents"), "a folder of the user's own"
    wave = operator["metadata"].get("annotations", {}).get("argocd.argoproj.io/sync-wave")
    names = [one["name"] for one in agents["spec"].get("dependsOn", ())]
    assert wave == "-1" or names == [operator["metadata"]["name"]]
