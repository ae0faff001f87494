"""Every leaf field of a spec, on a living object: set, changed, removed, set wrong, rolled back.

After each step the walked object must be equal to a fresh one with that spec: spec, status,
conditions, pods with their whole spec, Heartbeats. What may differ is listed, with the reason, in
`tests.support.walk.snapshot.MAY_DIFFER`; how often a pod is replaced is checked for itself.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from supervisor_operator.api.base import WireModel
from supervisor_operator.api.v1alpha1.supervisor import SupervisorSpec
from supervisor_operator.api.v1alpha1.team import TeamSpec
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess
from tests.support.tokens import Admin
from tests.support.walk.leaves import spec_leaves
from tests.support.walk.snapshot import View
from tests.support.walk.table import BASE, SUPERVISOR, TEAM, Steps, bundles
from tests.support.walk.walker import Ground

KINDS: dict[str, tuple[type[WireModel], dict[str, Steps]]] = {
    "Supervisor": (SupervisorSpec, SUPERVISOR),
    "SupervisorTeam": (TeamSpec, TEAM),
}
STILL_SECONDS = 6.0  # a roll-up may take 5 s


@pytest.mark.parametrize("kind", KINDS)
def test_every_leaf_of_the_schema_has_values_to_be_walked_with(kind: str) -> None:
    model, table = KINDS[kind]
    assert sorted(table) == sorted(spec_leaves(model))


@pytest.mark.timeout(400)
def test_a_walked_object_ends_like_a_fresh_one(
    fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path
) -> None:
    flags = (f"--namespace={fake_kubectl.namespace}", "--heartbeat-writes-per-second=0")
    operator = OperatorProcess(operator_access, tmp_path / "operator.log", *flags)
    with operator, Admin(fake_kubectl) as admin:
        ground = Ground(fake_kubectl, admin)
        for top in ("top-x", "top-y"):
            ground.create("Supervisor", top, BASE)
        for leaf, steps in SUPERVISOR.items():
            ground.add("Supervisor", spec_leaves(SupervisorSpec), {leaf: steps})
        for bundle in bundles(TEAM):
            ground.add("SupervisorTeam", spec_leaves(TeamSpec), bundle)
        ground.walk()
        failures = [walker.failure for walker in ground.walkers if walker.failure]
        failures += ground.stays(until_still(ground))
    walked = {(walker.kind, leaf) for walker in ground.walkers for leaf in walker.leaves}
    print(
        f"{len(walked)} leaves on {len(ground.walkers)} objects, {ground.edits} edits, "
        f"{ground.fresh} fresh objects"
    )
    assert not failures, "\n".join(failure[:1500] for failure in failures)
    assert walked == {
        (kind, leaf) for kind, (model, _) in KINDS.items() for leaf in spec_leaves(model)
    }
    assert "Traceback" not in operator.log


def until_still(ground: Ground) -> View:
    """The world once no object of ours has changed for longer than anything may wait."""
    view, since = ground.look(), time.monotonic()
    deadline = since + 60
    while time.monotonic() - since < STILL_SECONDS:
        time.sleep(0.5)
        now = ground.look()
        if revisions(now) != revisions(view):
            assert time.monotonic() < deadline, "never still"
            since = time.monotonic()
        view = now
    return view


def revisions(view: View) -> set[str]:
    items = [*view.supervisors.values(), *view.teams.values()]
    return {item["metadata"]["resourceVersion"] for item in items}
