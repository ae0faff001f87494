"""The operator's own wall clock is set an hour forward or back: no healthy agent pays for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.sim import Sim
from tests.support.team_sim import TeamSim, member

HOUR = 3600.0
NONE = {"source": "None"}
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


def crew(*names: str, **spec: Any) -> TeamSim:
    """All ACTIVE; a pod that does not start is given up after 20 s."""
    patience = {"restart": {"delaySeconds": 1}, "heartbeat": NONE | {"startupSeconds": 20}}
    members = [member(name, template=patience) for name in names]
    team = TeamSim(*members, **spec).settle()
    for _ in names:
        team.start()
    assert set(team.phases().values()) == {"ACTIVE"}
    return team


@BOTH
def test_a_group_restart_goes_on(skew: float) -> None:
    """The trigger's delay and the time given to a member that does not start end all the same."""
    team = crew("a", "b", "c", restartStrategy="OneForAll").crash("crew-b").reap()
    team.skew = skew
    team.wait(5)
    assert team.pods() == ["crew-a-r2"]
    team.skew = 0.0
    team.wait(25).start("crew-b").wait(1)
    assert team.pods() == ["crew-a-r2", "crew-b-r2", "crew-c-r2"]


@BOTH
def test_the_next_in_line_waits_no_hour_for_a_restart_slot(skew: float) -> None:
    team = crew("a", "b", maxConcurrentRestarts=1).crash("crew-a").wait(5)
    assert team.pods() == ["crew-a-r2", "crew-b-r1"], "and a's new pod does not start"
    team.skew = skew
    team.crash("crew-b").wait(30)
    assert team.pods() == ["crew-a-r2", "crew-b-r2"]


def test_a_team_budget_is_not_overdrawn_by_a_clock_set_back() -> None:
    team = crew("a", "b", restartStrategy="OneForAll", maxTeamRestarts=1)
    team.crash("crew-a").reap().wait(5).start().start()
    team.skew = -HOUR
    team.crash("crew-a").reap().wait(30)
    assert team.agents["crew-a"].status.phase == "FAILED"
    assert team.pods() == ["crew-b-r2"]
