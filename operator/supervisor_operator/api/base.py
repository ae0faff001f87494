"""What all wire models share, and the markers that only a CRD can express.

Bounds, enums and patterns are plain pydantic. What pydantic has no word for (CEL rules, list
types, free-form objects) is a marker here that `crdgen` copies into the schema.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

__all__ = [
    "LIST_SET",
    "FreeForm",
    "Name",
    "StringMap",
    "WireModel",
    "cel",
    "group",
    "list_map",
    "rules",
]

LIST_SET: dict[str, Any] = {"x-kubernetes-list-type": "set"}

FreeForm = Annotated[
    dict[str, Any],
    WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
]
"""An object whose keys are not ours to know."""

Name = Annotated[
    str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
]
"""A DNS label."""

StringMap = Annotated[
    dict[str, Annotated[str, Field(max_length=4096)]],
    Field(max_length=64),
]


class WireModel(BaseModel):
    """Camel case on the wire; fields of a newer version are ignored, not refused."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
    )


def cel(rule: str, message: str, field: str | None = None) -> dict[str, str]:
    """Write one CEL rule; `field` moves the error onto the field that must change."""
    found = {"rule": rule, "message": message}
    return found | {"fieldPath": field} if field else found


def rules(*found: dict[str, str]) -> dict[str, Any]:
    """Attach CEL rules to a model or field as `json_schema_extra`."""
    return {"x-kubernetes-validations": list(found)}


def list_map(*keys: str) -> dict[str, Any]:
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def group(model: type[WireModel]) -> Any:
    """A block whose every field has a default: absent means all defaults, here and on the server."""
    return Field(default_factory=model, json_schema_extra={"default": {}})
