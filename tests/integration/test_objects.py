"""Objects on a real API server: defaults, free-form parts, samples, and how it all reads."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from supervisor_operator.api.v1alpha1.kinds import KINDS
from supervisor_operator.api.v1alpha1.supervisor import Supervisor
from supervisor_operator.api.v1alpha1.team import SupervisorTeam
from tests.support.builders import a_supervisor, a_team
from tests.support.kubectl import Kubectl

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
SAMPLES = sorted((ROOT / "manifests/samples").glob("*.yaml"))
MODELS = {kind.name: kind.model for kind in KINDS}
FREE = {"deep": {"list": [{"unknown": {"key": [1, "two", None]}}]}, "empty": {}}


def test_the_server_fills_in_what_the_model_fills_in(kubectl: Kubectl) -> None:
    for item, model in ((a_supervisor(), Supervisor), (a_team(), SupervisorTeam)):
        stored = kubectl.create(item)
        ours = model.model_validate(item).model_dump(by_alias=True, mode="json", exclude_none=True)
        ours["spec"] = {key: value for key, value in ours["spec"].items() if value != []}
        assert stored["spec"] == ours["spec"]
        assert stored["status"] == {"observedGeneration": -1}


def free_spots(item: dict[str, Any]) -> list[Any]:
    spec = item["spec"]
    return [spec["config"], spec["agent"]["template"]["spec"]["volumes"]]


def test_unknown_keys_in_free_form_parts_survive(kubectl: Kubectl) -> None:
    template = {"spec": {"volumes": [{"name": "v", "madeUp": FREE}]}}
    item = a_supervisor(config=FREE, agent={"template": template})
    stored = kubectl.create(item)
    assert free_spots(stored) == free_spots(item)
    dumped = Supervisor.model_validate(stored).model_dump(by_alias=True, mode="json")
    assert free_spots(dumped) == free_spots(item)


def test_unknown_keys_in_a_team_survive(kubectl: Kubectl) -> None:
    members = [{"name": "a", "metadata": FREE, "template": {"config": FREE}}]
    stored = kubectl.create(a_team(config=FREE, members=members))
    member = stored["spec"]["members"][0]
    assert [stored["spec"]["config"], member["metadata"], member["template"]["config"]] == [
        FREE
    ] * 3


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_every_sample_applies_and_parses(kubectl: Kubectl, sample: Path) -> None:
    kubectl("apply", "-f", str(sample))
    for item in yaml.safe_load_all(sample.read_text()):
        stored = kubectl.get(item["kind"], item["metadata"]["name"])
        assert MODELS[item["kind"]].model_validate(stored)
        assert kubectl.ask("diff", "-f", str(sample)).out == ""


def test_explain_reads_well(kubectl: Kubectl) -> None:
    said = kubectl("explain", "supervisor.spec.heartbeat").out
    golden = (GOLDEN / "explain-heartbeat.txt").read_text()
    assert [line.rstrip() for line in said.splitlines()] == golden.splitlines()


STATUS = {
    "phase": "ACTIVE",
    "health": "HEALTHY",
    "restartSummary": "1/3",
    "missedHeartbeats": 0,
    "podName": "trader-r2",
    "nodeName": "node-7",
    "memberOf": {"team": "desk-team", "member": "t"},
    "conditions": [{"type": "Ready", "status": "True", "reason": "HeartbeatFresh"}],
}


def test_columns_say_it_at_a_glance(kubectl: Kubectl) -> None:
    kubectl.create(a_supervisor("trader", parentRef={"name": "desk"}))
    patch = str(yaml.safe_dump({"status": STATUS}))
    kubectl("patch", "sup", "trader", "--subresource=status", "--type=merge", "-p", patch)
    heads, row = (line.split() for line in kubectl("get", "sup", "-o", "wide").out.splitlines())
    assert " ".join(heads) == (
        "NAME PHASE HEALTH REASON RESTARTS HEARTBEAT AGE MODE MISSED POD NODE TEAM PARENT"
    )
    del row[5]  # the age
    assert " ".join(row) == (
        "trader ACTIVE HEALTHY HeartbeatFresh 1/3 Running 0 trader-r2 node-7 desk-team desk"
    )
    assert "trader" in kubectl("get", "supervision").out, "found by category"
    for selector, found in (("phase=ACTIVE", "trader"), ("phase=FAILED", "")):
        out = kubectl("get", "sup", f"--field-selector=status.{selector}", "-o", "name").out
        assert out.strip().removeprefix("supervisor.supervision.dev/") == found
