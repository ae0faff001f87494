"""A Supervisor as its team sees it: status and pods come on two watches, never at one moment."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor_operator.core.observed import PodView
from supervisor_operator.core.pods import view_pod
from supervisor_operator.core.words import Label, Mark
from supervisor_operator.kube.teams import view_agent

WAITING = {"type": "Ready", "status": "False", "reason": "WaitingForTeam"}


def a_member(run: int) -> dict[str, Any]:
    """Its status tells that this run failed and that the team is to say what follows."""
    metadata = {
        "name": "crew-a",
        "uid": "uid-of-a",
        "resourceVersion": "7",
        "creationTimestamp": "2026-11-18T12:00:00Z",
    }
    status = {"run": run, "phase": "SPAWNING", "conditions": [WAITING]}
    return {"metadata": metadata, "spec": {}, "status": status}


def a_pod(run: int, order: int) -> PodView:
    metadata = {"name": f"crew-a-r{run}", "uid": f"pod-{run}", "labels": {Label.RUN: str(run)}}
    return view_pod({"metadata": metadata | {"annotations": {Mark.ORDER: str(order)}}})


@pytest.mark.parametrize(
    ("pods", "waits"),
    [
        ((), True),
        ((a_pod(1, order=0),), True),
        ((a_pod(1, order=0), a_pod(2, order=1)), False),
    ],
    ids=["its pod is gone", "its pod ended", "its next pod is there already"],
)
def test_a_failure_is_the_teams_to_answer_until_there_is_a_newer_pod(
    pods: tuple[PodView, ...], *, waits: bool
) -> None:
    assert view_agent(a_member(run=1), pods).waiting is waits
