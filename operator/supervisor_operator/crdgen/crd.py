"""From a kind to its CustomResourceDefinition."""

from __future__ import annotations

import re
from typing import Any

from supervisor_operator.api.v1alpha1.kinds import Column, Kind
from supervisor_operator.api.v1alpha1.meta import GROUP, VERSION
from supervisor_operator.crdgen.schema import Schema, SchemaError, structural_schema

__all__ = ["build_crd", "file_name"]

OBJECT_META: Schema = {"type": "object"}
TYPE_META = {
    "apiVersion": {
        "type": "string",
        "description": f"Version of the schema of this object: {GROUP}/{VERSION}.",
    },
    "kind": {"type": "string", "description": "Kind of this object."},
}


def file_name(kind: Kind) -> str:
    return f"{GROUP}_{kind.plural}.yaml"


def build_crd(kind: Kind) -> dict[str, Any]:
    schema = _root(structural_schema(kind.model))
    for path in (*(column.path for column in kind.columns), *kind.selectable):
        _check_path(schema, path)
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
        "schema": {"openAPIV3Schema": schema},
    }
    if kind.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in kind.selectable]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{GROUP}",
            "labels": {"app.kubernetes.io/part-of": "supervisor-operator"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "singular": kind.name.lower(),
                "plural": kind.plural,
                "shortNames": [kind.short_name],
                "categories": ["supervision"],
            },
            "versions": [version],
        },
    }


def _root(schema: Schema) -> Schema:
    properties = schema["properties"] | TYPE_META | {"metadata": OBJECT_META}
    return schema | {"properties": properties, "required": ["spec"]}


def _column(column: Column) -> dict[str, Any]:
    found = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return found | {"priority": 1} if column.wide else found


def _check_path(schema: Schema, path: str) -> None:
    """A column that points nowhere would stay empty for ever; find it now."""
    if path == ".metadata.creationTimestamp":
        return
    node = schema
    for step in re.findall(r"\.(\w+)", re.sub(r"\[\?\(.*?\)\]", "", path)):
        node = node.get("items", node)
        if step not in node.get("properties", {}):
            raise SchemaError(path, f"{step} is not in the schema")
        node = node["properties"][step]
