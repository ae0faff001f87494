"""From pydantic's JSON Schema to what the API server calls a structural schema.

Works by an allow-list: a keyword that the server would refuse or silently misread is an error
with the field's path, never passed on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from supervisor_operator.api.base import WireModel

__all__ = ["SchemaError", "leaves", "structural_schema"]

Schema = dict[str, Any]

KEPT = frozenset(
    {
        "default",
        "description",
        "enum",
        "format",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "pattern",
        "required",
        "type",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    }
)
DROPPED = frozenset({"title", "$defs"})
NESTED = frozenset({"properties", "items", "additionalProperties"})


class SchemaError(Exception):
    """A model uses something that a CRD cannot say."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path or '.'}: {why}")


def structural_schema(model: type[WireModel]) -> Schema:
    raw = model.model_json_schema(by_alias=True, mode="validation")
    return _convert(raw, raw.get("$defs", {}), "", ())


def leaves(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every property of a schema with its path, parents before children."""
    for name, child in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        yield here, child
        yield from leaves(child, here)
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield from leaves(schema[key], path + mark)


def _convert(node: Schema, defs: dict[str, Schema], path: str, seen: tuple[str, ...]) -> Schema:
    node, seen = _flatten(node, defs, path, seen)
    unknown = node.keys() - KEPT - DROPPED - NESTED
    if unknown:
        raise SchemaError(path, f"a CRD has no {', '.join(sorted(unknown))}")
    found = {key: value for key, value in node.items() if key in KEPT}
    if found.get("default", ...) is None:
        del found["default"]
    if "description" in found:
        found["description"] = " ".join(found["description"].split())
    for key in ("items", "additionalProperties"):
        if key in node:
            found[key] = _convert(node[key], defs, f"{path}[]", seen)
    if "properties" in node:
        found["properties"] = {
            name: _convert(child, defs, f"{path}.{name}", seen)
            for name, child in node["properties"].items()
        }
    _check(found, path)
    return found


def _flatten(
    node: Schema, defs: dict[str, Schema], path: str, seen: tuple[str, ...]
) -> tuple[Schema, tuple[str, ...]]:
    """Resolve `$ref` and optional unions; the words beside them win."""
    while True:
        beside = {key: value for key, value in node.items() if key not in ("$ref", "anyOf")}
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            if name in seen:
                raise SchemaError(path, f"{name} contains itself")
            seen = (*seen, name)
            node = defs[name] | beside
        elif "anyOf" in node:
            options = [option for option in node["anyOf"] if option != {"type": "null"}]
            if len(options) != 1:
                raise SchemaError(path, "a union of several types has no structural schema")
            node = options[0] | beside
        else:
            return node, seen


def _check(node: Schema, path: str) -> None:
    typed = {"type", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"}
    if not typed & node.keys():
        raise SchemaError(path, "has no type")
    if node.get("x-kubernetes-preserve-unknown-fields") and "additionalProperties" in node:
        raise SchemaError(path, "additionalProperties would empty a free-form object")
    for rule in node.get("x-kubernetes-validations", ()):
        if "\n" in rule["message"]:
            raise SchemaError(path, "the message of a CEL rule is one line")
