"""Verdict and remedy: the table of the design, its guards, and the exact second."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.sim import Sim
from tests.unit.core.test_edges import beating, shown


@pytest.mark.parametrize(
    ("relay", "pod", "ready", "killed"),
    [
        (True, {}, "False/HeartbeatsMissed", True),
        (False, {"node_lost": True}, "False/NodeUnreachable", False),
        (False, {"relay_running": False}, "False/RelayDown", False),
        (False, {}, "False/HeartbeatsMissed", True),
    ],
    ids=["relay fresh", "node unreachable", "relay not running", "all looks well"],
)
def test_stale_beats(relay: bool, pod: dict[str, Any], ready: str, killed: bool) -> None:  # noqa: FBT001
    sim = beating().change(**pod).silent(125, relay=relay)
    assert shown(sim) == ("ACTIVE", "UNRESPONSIVE", ready)
    assert sim.killed == (["hello-r1"] if killed else [])


def test_fresh_beats() -> None:
    sim = beating()
    for _ in range(100):
        sim.wait(30).beat()
    assert (sim.killed, shown(sim)) == ([], ("ACTIVE", "HEALTHY", "True/HeartbeatFresh"))


@pytest.mark.parametrize(
    ("policy", "seconds"),
    [
        ({}, 120),
        ({"missedThreshold": 2}, 90),
        ({"missedThreshold": 0}, 30),
        ({"intervalSeconds": 1}, 4),
        ({"intervalSeconds": 5, "missedThreshold": 1}, 10),
    ],
)
def test_the_exact_second(policy: dict[str, int], seconds: int) -> None:
    sim = beating(heartbeat=policy).silent(seconds - 1)
    assert sim.status.health == "HEALTHY", f"{seconds - 1} s is healthy"
    sim.silent(1)
    assert sim.status.health == "UNRESPONSIVE", f"{seconds} s is not"
    interval = policy.get("intervalSeconds", 30)
    assert sim.status.missed_heartbeats == seconds // interval


@pytest.mark.parametrize(
    ("busy", "most", "verdict_at"), [(60, 0, 120), (60, 100, 180), (1000, 100, 220), (0, 100, 120)]
)
def test_busy_seconds_extend_the_deadline_within_the_limit(
    busy: float, most: int, verdict_at: int
) -> None:
    sim = Sim(heartbeat={"maxBusySeconds": most}).settle().start().beat(busy=busy)
    sim.silent(verdict_at - 1)
    assert sim.status.health == "HEALTHY"
    sim.silent(1)
    assert sim.status.health == "UNRESPONSIVE"


def test_node_guard_marks_on_time_and_waits_with_the_remedy() -> None:
    sim = beating(heartbeat={"intervalSeconds": 2})
    sim.silent(8, relay=False)
    assert shown(sim) == ("ACTIVE", "UNRESPONSIVE", "False/HeartbeatsMissed")
    assert sim.condition("Reconciling") == "True/RemediationHeld"
    sim.silent(51, relay=False)
    assert sim.killed == []
    sim.silent(2, relay=False)
    assert sim.killed == ["hello-r1"]


def test_storm_guard_marks_and_restarts_nobody() -> None:
    sim = beating()
    sim.storm = True
    sim.silent(300, relay=False)
    assert (sim.status.health, sim.killed) == ("UNRESPONSIVE", [])
    assert "FleetGuard" in {note.reason for note in sim.notes}
    sim.storm = False
    sim.silent(2, relay=False)
    assert sim.killed == ["hello-r1"]


def test_storm_guard_does_not_shield_an_agent_whose_relay_is_fresh() -> None:
    sim = beating()
    sim.storm = True
    sim.silent(121)
    assert sim.killed == ["hello-r1"]


def test_mark_only_and_recovery() -> None:
    sim = beating(restart={"onUnresponsive": "MarkOnly"}).silent(150)
    assert (sim.status.health, sim.killed) == ("UNRESPONSIVE", [])
    writes = sim.writes
    sim.silent(300)
    assert sim.writes == writes, "a mark that stands is not written again"
    sim.beat()
    assert shown(sim) == ("ACTIVE", "HEALTHY", "True/HeartbeatFresh")
    assert [note.reason for note in sim.notes][-2:] == ["Unresponsive", "Recovered"]


def test_the_story_of_a_freeze_reads_as_promised() -> None:
    sim = Sim().settle().start().wait(2).beat().silent(120).finish_kill().wait(6).start().beat()
    assert "\n".join(sim.log) == STORY


STORY = """\
Spawned: Pod hello-r1 created
Active: Pod hello-r1 sent its first heartbeat 2 s after start
Unresponsive: No heartbeat from pod hello-r1 for 120 s (4 missed, 3 allowed); \
the relay is alive, so the agent itself hangs; restart in 5 s
RestartScheduled: Restart 1 of 3 in 5 s because the agent is unresponsive
Restarted: Pod hello-r1 replaced by hello-r2 (Unresponsive); \
last words kept in status.lastTermination
Active: Pod hello-r2 sent its first heartbeat
Recovered: Heartbeats are back after 2 min 6 s"""
