"""The delay before a restart: one of its own for every run, also where no run was ever ACTIVE."""

from __future__ import annotations

from tests.support.sim import Sim


def delays(sim: Sim, runs: int) -> list[float]:
    """Let each run crash as it starts; the seconds until the next one."""
    found = []
    for run in range(1, runs + 1):
        sim.exit(3)
        crashed = sim.mono
        while len(sim.created) == run and sim.mono - crashed < 1000:
            sim.wait(1)
        found.append(sim.mono - crashed)
    return found


def test_an_agent_that_crashes_before_its_first_beat_is_backed_off_each_time() -> None:
    sim = Sim(restart={"maxRestarts": 4}).settle()
    for least, found in zip((5, 10, 20, 40), delays(sim, 4), strict=True):
        assert least <= found <= 1.1 * least + 1
    scheduled = [line.partition(" in ")[0] for line in sim.log if "RestartScheduled" in line]
    assert scheduled == [f"RestartScheduled: Restart {nth} of 4" for nth in (1, 2, 3, 4)]


def test_the_time_of_an_earlier_run_is_not_kept() -> None:
    sim = Sim().settle().exit(3).wait(6)
    assert sim.created == ["hello-r1", "hello-r2"]
    assert sim.status.next_restart_time is None


def test_an_operator_that_died_after_the_create_backs_off_too() -> None:
    sim = Sim().settle().exit(3)
    before = sim.status
    sim.wait(6)
    sim.status = before
    sim.exit(3)
    assert sim.created == ["hello-r1", "hello-r2"]
    assert sim.status.next_restart_time is not None
    assert sim.status.next_restart_time > sim.wall
