"""Argo CD's view: its Lua scripts on every state the operator can show, run by a real Lua 5.1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from supervisor_operator.api.v1alpha1.meta import GROUP
from tests.cluster.places import CHECKOUT
from tests.support.argocd import SUPERVISOR, TEAM, TEAMS, Json, acted, as_object, as_team, recorded
from tests.support.lua import run_lua
from tests.support.sim import Sim
from tests.unit.core.test_states import ROWS

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


HEALTH_TESTS: list[tuple[Path, Json]] = [
    (kind, case) for kind in (SUPERVISOR, TEAM) for case in load(kind / "health_test.yaml")["tests"]
]
ACTION_TESTS = load(ACTIONS / "action_test.yaml")


TEAMS_SHOWN = {
    "unseen": "Progressing",
    "starting": "Progressing",
    "well": "Healthy",
    "one in back-off": "Degraded",
    "all given up": "Degraded",
    "paused": "Suspended",
    "stopped": "Suspended",
}


@pytest.mark.parametrize(("row", "story"), [row[:2] for row in ROWS], ids=[row[0] for row in ROWS])
def test_each_state_has_its_health(row: str, story: Callable[[], Sim]) -> None:
    assert run_lua(HEALTH, as_object(story()))["status"] == SHOWN[row]


@pytest.mark.parametrize("row", TEAMS)
def test_each_state_of_a_team_has_its_health(row: str) -> None:
    assert run_lua(TEAM / "health.lua", as_team(TEAMS[row]()))["status"] == TEAMS_SHOWN[row]


@pytest.mark.parametrize(("kind", "case"), HEALTH_TESTS, ids=lambda one: str(one)[-60:])
def test_the_recorded_objects_have_their_health_and_message(kind: Path, case: Json) -> None:
    assert run_lua(kind / "health.lua", load(kind / case["inputPath"])) == case["healthStatus"]


def said(item: Json) -> tuple[Any, ...]:
    status = item["status"]
    conditions = status.get("conditions", ())
    shown = sorted((one["type"], one["status"], one["reason"]) for one in conditions)
    return status.get("phase"), status.get("health"), shown


def test_the_recorded_objects_are_what_the_operator_shows_today() -> None:
    """Else `python -m tests.support.argocd` writes them anew."""
    now = recorded()
    assert {kind / case["inputPath"] for kind, case in HEALTH_TESTS} == now.keys()
    for path, item in now.items():
        assert said(load(path)) == said(item), path


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
