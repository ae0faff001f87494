"""Who is above and below whom, as the store of Supervisors shows it."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor_operator.core.observed import PodView
from supervisor_operator.core.pods import view_pod
from supervisor_operator.core.tree import LineProblem
from supervisor_operator.kube.cluster import SUPERVISORS
from supervisor_operator.kube.customs import Customs
from supervisor_operator.kube.family import Family
from supervisor_operator.kube.store import Store
from tests.support.builders import a_supervisor


class Tree:
    """`parents` names for each Supervisor the one above."""

    def __init__(self, **parents: str) -> None:
        self.supervisors = Customs(SUPERVISORS, lambda _: None)
        pods: Store[PodView] = Store(view_pod, lambda pod: pod.owner)
        self.family = Family(self.supervisors, pods)
        self.revision = 0
        for name, parent in parents.items():
            self.put(name, parent)

    def put(
        self, name: str, parent: str = "", status: dict[str, Any] | None = None, **spec: Any
    ) -> tuple[set[str], set[str]]:
        """Tells by name whose roll-up it concerns, and who may have to obey it."""
        self.revision += 1
        above = {"parentRef": {"name": parent}} if parent else {}
        item = a_supervisor(name, **(above | spec))
        metadata = {"namespace": "default", "uid": f"uid-of-{name}", "generation": self.revision}
        item["metadata"] |= metadata | {"resourceVersion": str(self.revision)}
        self.supervisors.take("MODIFIED", item | {"status": status or {}})
        concerned, obeying = self.family.note(("default", name))
        return {key[1] for key in concerned}, {key[1] for key in obeying}

    def below(self, name: str) -> list[str]:
        return [child.name for child in self.family.tree(("default", name)).children]


def test_an_edit_concerns_those_above_before_and_now_and_all_below() -> None:
    tree = Tree(top="", other="", mid="top", leaf="mid")
    assert tree.put("mid", "other") == ({"top", "other"}, {"leaf"})
    assert (tree.below("top"), tree.below("other"), tree.below("mid")) == ([], ["mid"], ["leaf"])


def test_what_is_in_a_cycle_or_below_it_has_nobody_above_or_below() -> None:
    tree = Tree(a="b", b="c", c="a", hangs="a", deeper="hangs", fine="")
    orders = [{"child": "b", "uid": "uid-of-b", "run": 1, "id": 1}]
    tree.put("c", "a", {"childOrders": orders})
    for name in ("a", "b", "c", "hangs", "deeper"):
        found = tree.family.tree(("default", name))
        assert found.lineage.problem is LineProblem.CYCLE
        assert (found.children, found.order) == ((), 0)
    tree.put("a")
    assert (tree.below("c"), tree.below("a")) == (["b"], ["c", "hangs"])
    assert tree.family.tree(("default", "b")).order == 1


@pytest.mark.parametrize(("uid", "run"), [("uid-of-kid", 3), ("of a namesake before", None)])
def test_an_order_is_for_this_very_supervisor(uid: str, run: int | None) -> None:
    tree = Tree(boss="", kid="boss")
    order = {"child": "kid", "uid": uid, "run": 3, "id": 1}
    tree.put("boss", "", {"childOrders": [order]})
    assert tree.family.tree(("default", "kid")).ordered_run == run
