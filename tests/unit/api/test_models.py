"""The wire models read what the API server stores, also when it is newer than they are."""

from typing import Any

import pytest

from supervisor_operator.api.v1alpha1.kinds import KINDS, Kind
from supervisor_operator.api.v1alpha1.supervisor import Supervisor
from supervisor_operator.api.v1alpha1.team import SupervisorTeam
from supervisor_operator.crdgen.schema import structural_schema
from tests.support.builders import a_supervisor, a_team


def with_unknown_everywhere(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: with_unknown_everywhere(child) for key, child in value.items()} | {"newer": 1}
    if isinstance(value, list):
        return [with_unknown_everywhere(child) for child in value]
    return value


def test_fields_of_a_newer_version_are_ignored() -> None:
    plain = a_supervisor(heartbeat={"intervalSeconds": 5}, parentRef={"name": "desk"})
    newer = with_unknown_everywhere(plain)
    assert Supervisor.model_validate(newer).spec == Supervisor.model_validate(plain).spec


def test_free_form_parts_keep_every_key() -> None:
    config = {"a": {"b": [{"c": None}, 1.5, "x"]}}
    team = SupervisorTeam.model_validate(a_team(config=config))
    assert team.spec.model_dump(by_alias=True, mode="json")["config"] == config


def test_a_member_knows_an_absent_block_from_one_with_defaults() -> None:
    members = [{"name": "a", "template": {}}, {"name": "b", "template": {"heartbeat": {}}}]
    found = SupervisorTeam.model_validate(a_team(members=members)).spec.members
    assert found[0].template is not None
    assert found[0].template.heartbeat is None
    assert found[1].template is not None
    assert found[1].template.heartbeat is not None
    assert found[1].template.heartbeat.interval_seconds == 30


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_defaults_of_schema_and_model_agree(kind: Kind) -> None:
    heartbeat = {"podUID": "u", "supervisor": "s", "intervalSeconds": 30}
    required = heartbeat if kind.name == "Heartbeat" else {}
    spec = kind.model.model_validate(
        {"apiVersion": "v", "kind": kind.name, "metadata": {}, "spec": required}
    )
    dumped = spec.model_dump(by_alias=True, mode="json", exclude_none=True)["spec"]
    schema = structural_schema(kind.model)["properties"]["spec"]
    assert filled(schema, required) == {key: dumped[key] for key in filled(schema, required)}


def filled(schema: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """Fill defaults in as the API server does."""
    found = dict(value)
    for name, child in schema.get("properties", {}).items():
        if name not in found and "default" in child:
            found[name] = child["default"]
        if isinstance(found.get(name), dict):
            found[name] = filled(child, found[name])
    return found
