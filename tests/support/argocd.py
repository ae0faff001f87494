"""`python -m tests.support.argocd`: records one object per state for the tests of Argo CD's Lua.

The objects are what the operator's own core shows in each row of its table of states, so that the
recorded files cannot say what the operator does not; a test compares them with the code of today.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from supervisor_operator.api.v1alpha1.meta import GROUP, VERSION
from supervisor_operator.kube.report import dump_status
from tests.cluster.places import CHECKOUT
from tests.support.lua import run_lua
from tests.support.sim import Sim
from tests.unit.core.test_states import ROWS

FOLDER = CHECKOUT / "manifests/gitops/argocd" / GROUP
SUPERVISOR = FOLDER / "Supervisor"

Json = dict[str, Any]


def recorded() -> dict[str, Json]:
    """Name of the file, and the object in it, for every row."""
    return {file_of(row): as_object(story()) for row, story, *_ in ROWS}


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
    tests = []
    for name, item in recorded().items():
        write(SUPERVISOR / name, item)
        tests.append({"healthStatus": run_lua(SUPERVISOR / "health.lua", item), "inputPath": name})
    write(SUPERVISOR / "health_test.yaml", {"tests": tests})
    actions = SUPERVISOR / "actions"
    for case in yaml.safe_load((actions / "action_test.yaml").read_text())["actionTests"]:
        item = yaml.safe_load((actions / case["inputPath"]).read_text())
        write(actions / case["expectedOutputPath"], acted(case["action"], item))


if __name__ == "__main__":
    main()
