"""`python -m tests.support.argocd`: records one object per state for the tests of Argo CD's Lua.

The objects are what the operator's own core shows in each row of its table of states, so that the
recorded files cannot say what the operator does not; a test compares them with the code of today.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from supervisor_operator.api.v1alpha1.meta import GROUP, VERSION
from supervisor_operator.kube.report import dump_status
from tests.cluster.places import CHECKOUT
from tests.support.lua import run_lua
from tests.support.sim import Sim
from tests.support.team_sim import TeamSim, member
from tests.unit.core.test_states import ROWS
from tests.unit.core.test_teams import crew

FOLDER = CHECKOUT / "manifests/gitops/argocd" / GROUP
SUPERVISOR, TEAM = FOLDER / "Supervisor", FOLDER / "SupervisorTeam"

Json = dict[str, Any]


def given_up() -> TeamSim:
    never = {"restart": {"maxRestarts": 0}}
    return TeamSim(member("a", template=never)).settle().start().crash("crew-a")


TEAMS: dict[str, Callable[[], TeamSim]] = {
    "unseen": TeamSim,
    "starting": lambda: TeamSim(member("a")).settle(),
    "well": crew,
    "one in back-off": lambda: crew().crash("crew-a"),
    "all given up": given_up,
    "paused": lambda: crew().edit(operatingMode="Paused"),
    "stopped": lambda: crew().edit(operatingMode="Stopped").reap(),
}


def recorded() -> dict[Path, Json]:
    """File of each kind's tests, and the object in it, for every row."""
    agents = {SUPERVISOR / file_of(row): as_object(story()) for row, story, *_ in ROWS}
    return agents | {TEAM / file_of(row): as_team(story()) for row, story in TEAMS.items()}


def file_of(row: str) -> str:
    return f"testdata/{re.sub('[^a-z]+', '-', row.lower())}.yaml"


def as_object(sim: Sim) -> Json:
    metadata = {"name": sim.name, "namespace": "default", "generation": sim.generation}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Supervisor",
        "metadata": metadata,
        "spec": sim.spec_json,
        "status": dump_status(sim.status),
    }


def as_team(sim: TeamSim) -> Json:
    metadata = {"name": "crew", "namespace": "default", "generation": sim.generation}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "SupervisorTeam",
        "metadata": metadata,
        "spec": sim.spec_json,
        "status": dump_status(sim.status),
    }


def acted(action: str, item: Json) -> Json:
    """The object after an action; what has no fixed value is called TIME."""
    found = run_lua(SUPERVISOR / "actions" / action / "action.lua", item)
    request = found["spec"].get("restartRequest")
    if request:
        found["spec"]["restartRequest"] = re.sub(r"\d{4}-\d\d-\d\dT[\d:]{8}Z$", "TIME", request)
    return found


def write(path: Path, content: Any) -> None:
    path.write_text("---\n" + yaml.safe_dump(content, sort_keys=False, width=100))


def main() -> None:
    """Write objects and expectations; a person reads the difference before it is committed."""
    tests: dict[Path, list[Json]] = {SUPERVISOR: [], TEAM: []}
    for path, item in recorded().items():
        kind = path.parents[1]
        path.parent.mkdir(exist_ok=True)
        write(path, item)
        health = run_lua(kind / "health.lua", item)
        tests[kind].append({"healthStatus": health, "inputPath": f"testdata/{path.name}"})
    for kind, cases in tests.items():
        write(kind / "health_test.yaml", {"tests": cases})
    actions = SUPERVISOR / "actions"
    for case in yaml.safe_load((actions / "action_test.yaml").read_text())["actionTests"]:
        item = yaml.safe_load((actions / case["inputPath"]).read_text())
        write(actions / case["expectedOutputPath"], acted(case["action"], item))


if __name__ == "__main__":
    main()
