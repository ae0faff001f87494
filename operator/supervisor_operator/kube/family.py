"""Who is above and below whom: parentRef of all Supervisors, indexed both ways."""

from __future__ import annotations

from collections import defaultdict

from supervisor_operator.api.v1alpha1.meta import Health, OperatingMode, Phase
from supervisor_operator.api.v1alpha1.supervisor_status import OutcomeType
from supervisor_operator.core.observed import PodView
from supervisor_operator.core.tree import (
    ChildView,
    Lineage,
    LineProblem,
    TreeView,
    strictest,
    trace,
)
from supervisor_operator.kube.cluster import Object
from supervisor_operator.kube.customs import Customs
from supervisor_operator.kube.store import Store
from supervisor_operator.queue import Key

PHASES = {str(phase): phase for phase in Phase}
HEALTHS = {str(health): health for health in Health}


class Family:
    def __init__(self, supervisors: Customs, pods: Store[PodView]) -> None:
        self._supervisors = supervisors
        self._pods = pods
        self._parents: dict[Key, str] = {}
        self._children: defaultdict[Key, set[str]] = defaultdict(set)
        self._generations: dict[Key, int] = {}

    def note(self, key: Key) -> tuple[set[Key], set[Key]]:
        """Take a change; tells whose roll-up it concerns, and who may have to obey it."""
        namespace, name = key[0], key[1]
        item = self._supervisors.get(key)
        before = self._parents.pop(key, None)
        now = _parent(item) if item else None
        if before is not None and before != now:
            self._drop((namespace, before), name)
        if now is not None:
            self._parents[key] = now
            self._children[namespace, now].add(name)
        above: set[Key] = {(namespace, parent) for parent in (before, now) if parent is not None}
        return above, self._below(key) if self._is_new_spec(key, item) else set()

    def children(self, key: Key) -> set[Key]:
        return {(key[0], name) for name in self._children.get((key[0], key[1]), ())}

    def tree(self, key: Key) -> TreeView:
        namespace, lineage = key[0], self._lineage(key)
        if lineage.problem is LineProblem.CYCLE:
            return TreeView(lineage)  # nobody there is above or below anybody
        names = sorted(self._children.get((namespace, key[1]), ()))
        children = (self._supervisors.get((namespace, name)) for name in names)
        order = self._order_for(key)
        return TreeView(
            lineage=lineage,
            children=tuple(self._view(child) for child in children if child),
            ordered_run=order.get("run") if order else None,
            order=order.get("id", 0) if order else 0,
        )

    def _view(self, item: Object) -> ChildView:
        pods = self._pods.of(item["metadata"]["uid"])
        newest = max(pods, key=lambda pod: pod.run, default=None)
        return view_child(item, newest.parent_order if newest else 0)

    def _order_for(self, key: Key) -> Object | None:
        """The newest order to this very Supervisor in the status of the one above."""
        item = self._supervisors.get(key)
        parent = self._supervisors.get((key[0], self._parents.get(key, "")))
        if item is None or parent is None:
            return None
        orders = parent["status"].get("childOrders") or ()
        mine = [order for order in orders if order["uid"] == item["metadata"]["uid"]]
        return max(mine, key=lambda order: int(order["id"]), default=None)

    def mode(self, key: Key, own: OperatingMode) -> OperatingMode:
        """The strictest of its own mode and those of all above."""
        ancestors = self._lineage(key).ancestors
        above = (self._supervisors.get((key[0], name)) for name in ancestors)
        return strictest([own, *(mode_of(item) for item in above if item)])

    def _lineage(self, key: Key) -> Lineage:
        namespace = key[0]
        return trace(
            key[1],
            lambda name: self._parents.get((namespace, name)),
            lambda name: self._supervisors.get((namespace, name)) is not None,
        )

    def _is_new_spec(self, key: Key, item: Object | None) -> bool:
        generation = item["metadata"].get("generation", 0) if item else -1
        is_new = self._generations.get(key) != generation
        if item:
            self._generations[key] = generation
        else:
            self._generations.pop(key, None)
        return is_new

    def _below(self, key: Key) -> set[Key]:
        found: set[Key] = set()
        waiting = [key]
        while waiting:
            current = waiting.pop()
            for name in self._children.get((current[0], current[1]), ()):
                child = (key[0], name)
                if child not in found:
                    found.add(child)
                    waiting.append(child)
        return found

    def _drop(self, parent: Key, name: str) -> None:
        self._children[parent].discard(name)
        if not self._children[parent]:
            del self._children[parent]


def mode_of(item: Object) -> OperatingMode:
    """Its own mode; a word that is not known asks for nothing."""
    try:
        return OperatingMode(item["spec"].get("operatingMode", OperatingMode.RUNNING))
    except ValueError:
        return OperatingMode.RUNNING


def view_child(item: Object, parent_order: int) -> ChildView:
    status = item["status"]
    outcome = status.get("outcome") or {}
    failed = outcome.get("type") == OutcomeType.FAILED
    return ChildView(
        name=item["metadata"]["name"],
        phase=PHASES.get(status.get("phase", "")),
        health=HEALTHS.get(status.get("health", "")),
        finished=outcome.get("type") == OutcomeType.FINISHED,
        uid=item["metadata"]["uid"],
        run=status.get("run") or 0,
        failed_run=outcome.get("run") or 0 if failed else None,
        parent_order=parent_order,
    )


def _parent(item: Object) -> str | None:
    name: str | None = (item["spec"].get("parentRef") or {}).get("name")
    return name
