"""docs/reference.md from the CRDs: every field with its type, default and meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

HEAD = """\
# Reference

Generated from the models by `make crds`; `kubectl explain` says the same. Do not edit.
"""
TABLE = "| field | type | default | meaning |\n| --- | --- | --- | --- |"
BOUNDS = {
    "minimum": "≥ {}",
    "maximum": "≤ {}",
    "maxLength": "≤ {} characters",
    "maxItems": "≤ {} items",
}


def render_reference(crds: list[dict[str, Any]]) -> str:
    return "\n".join([HEAD, *(line for crd in crds for line in _kind(crd))])


def _kind(crd: dict[str, Any]) -> Iterator[str]:
    names = crd["spec"]["names"]
    short = ", ".join(names.get("shortNames", ()))
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    yield f"## {names['kind']}\n\n{schema.get('description', '')} Short name: `{short}`.\n"
    for part in ("spec", "status"):
        yield f"### {names['kind']} {part}\n\n{TABLE}"
        yield from _rows(schema["properties"][part], "")
        yield ""


def _rows(schema: Schema, path: str) -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        here = f"{path}{name}"
        text = " ".join([field.get("description", ""), *_rules(field)])
        cells = [f"`{here}`", _type(field), _default(field), text.strip()]
        line = " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
        yield f"| {line} |"
        if field.get("type") == "array":
            yield from _rows(field["items"], f"{here}[].")
        else:
            yield from _rows(field, f"{here}.")


def _type(field: Schema) -> str:
    if "enum" in field:
        return ", ".join(f"`{word}`" for word in field["enum"])
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    if "additionalProperties" in field:
        return "map"
    return str(field.get("format") or field.get("type") or "any")


def _default(field: Schema) -> str:
    return f"`{field['default']}`" if field.get("default") not in (None, {}) else ""


def _rules(field: Schema) -> Iterator[str]:
    bounds = [words.format(field[key]) for key, words in BOUNDS.items() if key in field]
    if bounds:
        yield f"({', '.join(bounds)})"
    for rule in field.get("x-kubernetes-validations", ()):
        yield f"Rule: {rule['message']}."
