"""Objects as tests want them: small, named, easy to read."""

from __future__ import annotations

from typing import Any

from supervisor_operator.api.v1alpha1.meta import GROUP, VERSION

AGENT = {"image": "localhost/agent:1"}


def an_object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def a_supervisor(name: str = "hello", **spec: Any) -> dict[str, Any]:
    return an_object("Supervisor", name, {"agent": AGENT} | spec)


def a_team(name: str = "crew", **spec: Any) -> dict[str, Any]:
    return an_object("SupervisorTeam", name, spec)
