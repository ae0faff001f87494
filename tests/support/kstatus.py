"""The rules by which kstatus, and so Flux and others, reads an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DECIDING = {"Reconciling": "InProgress", "Stalled": "Failed"}


def kstatus(item: Mapping[str, Any]) -> str:
    metadata, status = item["metadata"], item.get("status") or {}
    if "deletionTimestamp" in metadata:
        return "Terminating"
    if status.get("observedGeneration", metadata["generation"]) != metadata["generation"]:
        return "InProgress"
    conditions = status.get("conditions") or []
    for condition in conditions:
        if condition["type"] in DECIDING and condition["status"] == "True":
            return DECIDING[condition["type"]]
    ready = next((one for one in conditions if one["type"] == "Ready"), None)
    return "Current" if ready is None or ready["status"] == "True" else "InProgress"
