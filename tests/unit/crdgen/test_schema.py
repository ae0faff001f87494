"""What a CRD cannot say is an error with a path, never passed on."""

from typing import Annotated, Any

import pytest
from pydantic import Field

from supervisor_operator.api.base import FreeForm, WireModel
from supervisor_operator.crdgen.schema import SchemaError, structural_schema


class Inner(WireModel):
    """Inner model."""

    some_value: int = 7
    """A number."""


class Outer(WireModel):
    """Outer model."""

    needed: Inner
    """The words of the field win over those of the model."""
    maybe: str | None = None
    """Absent, not null."""
    free: FreeForm | None = None
    """Anything."""


class Union(WireModel):
    either: int | str


class Exclusive(WireModel):
    count: Annotated[int, Field(gt=0)]


class Unique(WireModel):
    names: set[str]


class Untyped(WireModel):
    anything: Any


class Again(WireModel):
    again: "Again | None" = None


def test_references_are_inlined_and_optional_means_absent() -> None:
    schema = structural_schema(Outer)
    assert schema["required"] == ["needed"]
    assert schema["properties"]["needed"] == {
        "description": "The words of the field win over those of the model.",
        "type": "object",
        "properties": {"someValue": {"description": "A number.", "type": "integer", "default": 7}},
    }
    assert schema["properties"]["maybe"] == {"description": "Absent, not null.", "type": "string"}
    assert schema["properties"]["free"]["x-kubernetes-preserve-unknown-fields"] is True


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (Union, r"\.either: a union of several types"),
        (Exclusive, r"\.count: a CRD has no exclusiveMinimum"),
        (Unique, r"\.names: a CRD has no uniqueItems"),
        (Untyped, r"\.anything: has no type"),
        (Again, r"\.again: Again contains itself"),
    ],
)
def test_what_a_crd_cannot_say_is_refused(model: type[WireModel], says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        structural_schema(model)
