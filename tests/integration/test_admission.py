"""The accept/refuse table on a real API server, and on pydantic where it can judge."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from supervisor_operator.api.v1alpha1.kinds import KINDS
from tests.support.builders import a_team, an_object
from tests.support.kubectl import Kubectl

Row = dict[str, Any]
ROWS: list[Row] = yaml.safe_load((Path(__file__).parent / "admission.yaml").read_text())
MODELS = {kind.name: kind.model for kind in KINDS}


def object_of(row: Row) -> dict[str, Any]:
    return an_object(row.get("kind", "Supervisor"), row.get("name", "an-object"), row["spec"])


def test_the_table_is_long_enough_and_names_each_case_once() -> None:
    assert len(ROWS) >= 60
    assert len({row["case"] for row in ROWS}) == len(ROWS)


def test_each_row_is_taken_or_refused_with_its_words(kubectl: Kubectl) -> None:
    """One test for the whole table: each row costs one request, all wrong rows are told at once."""
    wrong = []
    for row in ROWS:
        answer = kubectl.ask("create", "-f", "-", "--dry-run=server", stdin=object_of(row))
        missing = [part for part in row.get("says", ()) if part not in answer.err]
        if (answer.code != 0) != ("says" in row) or missing:
            wrong.append(f"{row['case']}: {missing or 'refused or taken by mistake'}: {answer.err}")
    assert wrong == []


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.get("judge") != "server"], ids=lambda row: str(row["case"])
)
def test_pydantic_comes_to_the_same_verdict(row: Row) -> None:
    item = object_of(row)
    model = MODELS[item["kind"]]
    if "says" in row:
        with pytest.raises(ValidationError):
            model.model_validate(item)
    else:
        assert model.model_validate(item)


def test_a_team_of_101_members_is_refused(kubectl: Kubectl) -> None:
    members = [{"name": f"m{number}", "template": {}} for number in range(101)]
    answer = kubectl.ask("create", "-f", "-", stdin=a_team(members=members))
    assert answer.code != 0
    assert "spec.members: Too many: 101: must have at most 100 items" in answer.err


def test_a_heartbeat_never_changes_its_pod(kubectl: Kubectl) -> None:
    spec = {"podUID": "first", "supervisor": "hello", "intervalSeconds": 30}
    kubectl.create(an_object("Heartbeat", "hello-r1", spec))
    patch = '{"spec": {"podUID": "second"}}'
    answer = kubectl.ask("patch", "hb", "hello-r1", "--type=merge", "-p", patch)
    assert "a Heartbeat belongs to one pod for good" in answer.err
