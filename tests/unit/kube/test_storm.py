"""The storm guard: where most of a namespace falls silent at once, nobody is restarted."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from supervisor_operator.kube.storm import StormWatch


@dataclass(slots=True)
class Namespaces:
    """Silent and all agents per namespace, and how often they were counted."""

    now: float = 0.0
    agents: dict[str, tuple[int, int]] = field(default_factory=dict)
    counted: int = 0
    watch: StormWatch = field(init=False)

    def __post_init__(self) -> None:
        self.watch = StormWatch(self.count, lambda: self.now)

    def count(self, namespace: str) -> tuple[int, int]:
        self.counted += 1
        return self.agents.get(namespace, (0, 0))

    def is_on(self, namespace: str = "shop") -> bool:
        return self.watch.is_on(namespace, self.now)


@pytest.mark.parametrize(
    ("silent", "total", "is_on"),
    [(6, 10, True), (5, 10, False), (9, 9, False), (10, 10, True), (0, 0, False), (51, 100, True)],
)
def test_it_takes_ten_agents_and_more_than_half_of_them(
    silent: int, total: int, *, is_on: bool
) -> None:
    world = Namespaces(agents={"shop": (silent, total)})
    assert world.is_on() is is_on
    assert world.watch.active == is_on


def test_one_namespaces_storm_is_not_anothers() -> None:
    world = Namespaces(agents={"shop": (10, 10), "bank": (0, 10)})
    assert world.is_on("shop")
    assert not world.is_on("bank")
    assert world.watch.active == 1


def test_it_ends_when_beats_return() -> None:
    world = Namespaces(agents={"shop": (10, 10)})
    assert world.is_on()
    world.agents["shop"] = (2, 10)
    world.now = 1.0
    assert not world.is_on()
    assert world.watch.active == 0


def test_it_holds_for_five_minutes_at_most_and_does_not_begin_again_by_itself() -> None:
    world = Namespaces(agents={"shop": (10, 10)})
    answers = {}
    for world.now in (0.0, 150.0, 299.0, 300.0, 301.0, 900.0):
        answers[world.now] = world.is_on()
    assert answers == {0: True, 150: True, 299: True, 300: False, 301: False, 900: False}
    assert world.watch.active == 0


def test_the_next_storm_has_its_own_five_minutes() -> None:
    world = Namespaces(agents={"shop": (10, 10)})
    assert world.is_on()
    world.now, world.agents["shop"] = 400.0, (0, 10)
    assert not world.is_on()
    world.now, world.agents["shop"] = 500.0, (10, 10)
    assert world.is_on()


def test_agents_are_counted_once_a_second_however_many_ask() -> None:
    world = Namespaces(agents={"shop": (10, 10)})
    for _ in range(1000):
        assert world.is_on()
    assert world.counted == 1
    world.now = 1.0
    assert world.is_on()
    assert world.counted == 2


def test_where_no_remedy_depends_on_it_it_is_counted_seldom() -> None:
    world = Namespaces(agents={"shop": (0, 10)})
    for tenth in range(100):
        world.watch.is_on("shop", tenth / 10, in_earnest=False)
    assert world.counted == 1
    assert not world.watch.is_on("shop", 9.9)
    assert world.counted == 2, "before a remedy the number is a new one"
