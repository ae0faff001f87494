"""The CRDs in crds/ are complete, small and no older than the models."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from supervisor_operator.api.v1alpha1.kinds import HEARTBEAT, KINDS, SUPERVISOR, TEAM, Column, Kind
from supervisor_operator.crdgen.__main__ import main
from supervisor_operator.crdgen.crd import build_crd, file_name
from supervisor_operator.crdgen.reference import render_reference
from supervisor_operator.crdgen.schema import SchemaError, leaves

CRDS = Path(__file__).parents[3] / "crds"
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def schema_of(kind: Kind) -> dict[str, Any]:
    found: dict[str, Any] = build_crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


@every_kind
def test_every_field_is_described(kind: Kind) -> None:
    fields = dict(leaves(schema_of(kind)))
    del fields[".metadata"]  # the API server describes it
    bare = [path for path, schema in fields.items() if not schema.get("description")]
    assert len(fields) > 10
    assert bare == []


@every_kind
def test_a_crd_fits_in_the_annotation_of_kubectl_apply(kind: Kind) -> None:
    assert (CRDS / file_name(kind)).stat().st_size <= 64 * 1024


@every_kind
def test_a_column_that_points_nowhere_is_an_error(kind: Kind) -> None:
    wrong = dataclasses.replace(kind, columns=(Column("Oops", ".status.nothing"),))
    with pytest.raises(SchemaError, match="nothing is not in the schema"):
        build_crd(wrong)


def test_drift_is_found_and_healed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", str(CRDS)]) == 0
    assert main([str(tmp_path)]) == 0
    path = tmp_path / file_name(TEAM)
    path.write_text(path.read_text() + "# edited by hand\n")
    assert main(["--check", str(tmp_path)]) == 1
    assert "run `make crds`" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0


@pytest.mark.parametrize("kind", [SUPERVISOR, TEAM], ids=lambda kind: kind.name)
def test_status_says_unseen_until_the_first_pass(kind: Kind) -> None:
    assert schema_of(kind)["properties"]["status"]["default"] == {"observedGeneration": -1}


def test_a_heartbeat_has_no_status_before_the_first_beat() -> None:
    assert "default" not in schema_of(HEARTBEAT)["properties"]["status"]


def test_acronyms_are_written_as_kubernetes_writes_them() -> None:
    names = {path.rpartition(".")[2] for kind in KINDS for path, _ in leaves(schema_of(kind))}
    assert {"podUID", "childUID"} <= names
    assert not [name for name in names if name.endswith("Uid")]


@every_kind
def test_names_as_users_type_them(kind: Kind) -> None:
    document = yaml.safe_load((CRDS / file_name(kind)).read_text())
    names = document["spec"]["names"]
    assert names["categories"] == ["supervision"]
    assert names["shortNames"] == [kind.short_name]
    assert document["spec"]["versions"][0]["subresources"] == {"status": {}}


def test_the_reference_has_every_field() -> None:
    page = render_reference([build_crd(kind) for kind in KINDS])
    assert "| `heartbeat.intervalSeconds` | integer | `30` |" in page
    for kind in KINDS:
        schema = build_crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for part in ("spec", "status"):
            for name in schema["properties"][part]["properties"]:
                assert f"| `{name}` |" in page, f"{kind.plural}.{part}.{name}"
