"""The leaf fields of a spec, from the schema itself, and specs with one leaf set, or without it."""

from __future__ import annotations

import copy
import re
from typing import Any

from supervisor_operator.api.base import WireModel
from supervisor_operator.crdgen.schema import Schema, leaves, structural_schema

Json = dict[str, Any]
LONGER_THAN_ALLOWED = 1


def spec_leaves(model: type[WireModel]) -> dict[str, Schema]:
    """Path and schema of every field that holds no field of its own."""
    found = leaves(structural_schema(model))
    return {path: schema for path, schema in found if not _has_fields(schema)}


def _has_fields(schema: Schema) -> bool:
    return "properties" in schema or "properties" in schema.get("items", {})


def with_leaf(spec: Json, path: str, value: Any) -> Json:
    """The spec with this leaf set, in the first entry of each list on the way."""
    changed: Json = _changed(spec, _parts(path), value)
    return changed


def without_leaf(spec: Json, path: str) -> Json:
    """The same spec where the leaf is not in it."""
    *parents, last = _parts(path)
    found = copy.deepcopy(spec)
    holder: Any = found
    for part in parents:
        holder = _inside(holder, part)
        if holder is None:
            return found
    holder.pop(last, None)
    return found


def misfits(schema: Schema) -> list[Any]:
    """Values that the schema refuses: of another type, and out of bounds."""
    if "x-kubernetes-int-or-string" in schema:
        return ["many", -1]
    if "enum" in schema:
        return ["Nonsense", 7]
    match schema["type"]:
        case "integer":
            return ["seven", schema["maximum"] + 1, schema["minimum"] - 1]
        case "string":
            return [7, "x" * (schema["maxLength"] + LONGER_THAN_ALLOWED)]
        case "array":
            return ["text", [{}] * (schema["maxItems"] + 1)]
        case _:
            return ["text", ["text"]]


def _parts(path: str) -> list[str]:
    return re.findall(r"[^.\[\]]+|\[\]", path)


def _inside(holder: Any, part: str) -> Any:
    if part == "[]":
        return holder[0] if holder else None
    return holder.get(part)


def _changed(holder: Any, parts: list[str], value: Any) -> Any:
    if not parts:
        return value
    first, *rest = parts
    if first == "[]":
        entries = list(holder or [{}])
        return [_changed(entries[0], rest, value), *entries[1:]]
    found = dict(holder or {})
    return found | {first: _changed(found.get(first), rest, value)}
