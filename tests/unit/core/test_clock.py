"""The operator's own wall clock is set an hour forward or back: no healthy agent pays for it."""

from __future__ import annotations

import pytest

from tests.support.sim import Sim

HOUR = 3600.0
BOTH = pytest.mark.parametrize("skew", [HOUR, -HOUR], ids=["forward", "back"])


@BOTH
def test_an_agent_that_beats_is_left_alone(skew: float) -> None:
    sim = Sim().settle().start().beat()
    sim.skew = skew
    for _ in range(10):
        sim.wait(30).beat()
    assert (sim.created, sim.killed, sim.deleted) == (["hello-r1"], [], [])
    assert sim.status.health == "HEALTHY"


@BOTH
def test_silence_is_judged_by_another_clock(skew: float) -> None:
    sim = Sim().settle().start().beat()
    sim.skew = skew
    sim.silent(119)
    assert sim.status.health == "HEALTHY"
    sim.silent(2)
    assert sim.status.health == "UNRESPONSIVE"


@BOTH
def test_a_back_off_lasts_at_most_one_delay_longer(skew: float) -> None:
    sim = Sim(restart={"delaySeconds": 20}).settle().start().beat().exit(3)
    sim.skew = skew
    sim.wait(45)
    assert sim.created == ["hello-r1", "hello-r2"]
    assert (sim.status.restarts, sim.status.restarts_counted) == (1, 1)


@BOTH
def test_the_budget_is_not_overdrawn(skew: float) -> None:
    sim = Sim(restart={"maxRestarts": 2, "delaySeconds": 1}).settle().start().beat()
    for _ in range(3):
        sim.exit(3)
        sim.skew += skew
        sim.wait(10)
        if sim.unfinished:
            sim.start()
    assert sim.created == ["hello-r1", "hello-r2", "hello-r3"]
    assert sim.condition("Stalled") == "True/RestartBudgetExhausted"
