"""A supervision tree in memory: every node a `Sim`, each seeing the others' statuses."""

from __future__ import annotations

from typing import Any, Self

from supervisor_operator.core.tree import LineProblem, TreeView, strictest, trace
from supervisor_operator.kube.family import view_child
from supervisor_operator.kube.report import dump_status
from tests.support.sim import Sim

NONE = {"source": "None"}


class TreeSim:
    """`parents` names for each node the one above; nodes without an agent are given as such."""

    def __init__(self, parents: dict[str, str | None], **specs: dict[str, Any]) -> None:
        self.parents = parents
        self.mono = 1000.0
        self.nodes: dict[str, Sim] = {}
        for name, parent in parents.items():
            above = {"parentRef": {"name": parent}} if parent else {}
            self.nodes[name] = Sim(name, **({"heartbeat": NONE} | above | specs.get(name, {})))

    def settle(self) -> Self:
        for _ in range(60):
            changed = [self._sync(node).one_pass() for node in self.nodes.values()]
            if not any(changed):
                return self
        raise AssertionError("never settles")

    def wait(self, seconds: float) -> Self:
        self.mono += seconds
        return self.settle()

    def start(self) -> Self:
        for node in self.nodes.values():
            if node.unfinished and not node.pod.running and not node.pod.terminating:
                self._sync(node).start()
        return self.settle()

    def crash(self, name: str) -> Self:
        node = self._sync(self.nodes[name])
        if node.unfinished and node.pod.running:
            node.exit(3)
        return self.settle()

    def edit(self, name: str, **spec: Any) -> Self:
        self._sync(self.nodes[name]).edit(**spec)
        return self.settle()

    def reap(self) -> Self:
        for node in self.nodes.values():
            for pod in [pod for pod in node.pods.values() if pod.terminating]:
                self._sync(node).remove(pod.name)
        return self.settle()

    def phases(self) -> dict[str, str]:
        return {name: str(node.status.phase) for name, node in self.nodes.items()}

    def _sync(self, node: Sim) -> Sim:
        node.mono = self.mono
        below = [name for name, parent in self.parents.items() if parent == node.name]
        parent = self.nodes.get(self.parents[node.name] or "")
        orders = (
            [one for one in (parent.status.child_orders or ()) if one.uid == node.uid]
            if parent
            else []
        )
        newest = max(orders, key=lambda order: order.id, default=None)
        lineage = trace(node.name, self.parents.get, self.nodes.__contains__)
        cycle = lineage.problem is LineProblem.CYCLE
        node.tree = (
            TreeView(lineage)
            if cycle
            else TreeView(
                lineage=lineage,
                children=tuple(self._child(name) for name in below),
                ordered_run=newest.run if newest else None,
                order=newest.id if newest else 0,
            )
        )
        modes = [self.nodes[name].observe().spec.operating_mode for name in lineage.ancestors]
        node.mode_above = strictest(modes) if modes else None
        return node

    def _child(self, name: str) -> Any:
        node = self.nodes[name]
        pods = node.pods.values()
        newest = max(pods, key=lambda pod: pod.run, default=None)
        item = {
            "metadata": {"name": name, "uid": node.uid},
            "spec": node.spec_json,
            "status": dump_status(node.status),
        }
        return view_child(item, newest.parent_order if newest else 0)
