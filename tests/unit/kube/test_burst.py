"""What may wait while many agents are being started at once."""

from __future__ import annotations

from supervisor_operator.kube.burst import FEWEST, HOLD_SECONDS, WITHIN_SECONDS, Burst


class Watch:
    def __init__(self) -> None:
        self.now = 100.0
        self.burst = Burst(lambda: self.now)

    def create(self, count: int) -> None:
        for _ in range(count):
            self.burst.note()


def test_a_few_pods_are_told_of_at_once() -> None:
    watch = Watch()
    watch.create(FEWEST - 1)
    assert watch.burst.hold(0.0) is None


def test_news_of_many_wait_until_they_are_a_few_seconds_old() -> None:
    watch = Watch()
    watch.create(FEWEST)
    assert watch.burst.hold(0.0) == HOLD_SECONDS
    assert watch.burst.hold(HOLD_SECONDS - 1) == 1
    assert watch.burst.hold(HOLD_SECONDS) is None


def test_news_of_a_rush_wait_also_when_it_is_over() -> None:
    watch = Watch()
    watch.create(FEWEST)
    watch.now += HOLD_SECONDS - 1
    assert watch.burst.hold(HOLD_SECONDS - 1) == 1
    assert watch.burst.hold(0.0) is None


def test_a_burst_is_over_when_creating_slows_down() -> None:
    watch = Watch()
    watch.create(FEWEST)
    watch.now += WITHIN_SECONDS + 0.1
    assert watch.burst.hold(0.0) is None
    watch.create(1)
    assert watch.burst.hold(0.0) is None
