"""The HEARTBEAT column: fresh where the budget allows it, absent rather than stale."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from supervisor_operator.core.observed import BeatColumn
from supervisor_operator.kube.cluster import Object
from supervisor_operator.kube.column import ColumnBudget

START = datetime(2026, 1, 1, tzinfo=UTC)
KEEP, REFRESH, OMIT = BeatColumn.KEEP, BeatColumn.REFRESH, BeatColumn.OMIT


def shown(ago: float) -> str:
    return (START - timedelta(seconds=ago)).isoformat().replace("+00:00", "Z")


def an_item(ago: float | None, health: str = "HEALTHY", **heartbeat: Any) -> Object:
    status = {"health": health} | ({} if ago is None else {"lastHeartbeatTime": shown(ago)})
    return {"spec": {"agent": {}, "heartbeat": heartbeat}, "status": status}


@dataclass(slots=True)
class Fleet:
    size: int = 1
    rate: float = 10.0
    now: float = 0.0
    budget: ColumnBudget = field(init=False)

    def __post_init__(self) -> None:
        self.budget = ColumnBudget(self.rate, lambda: self.size, lambda: self.now, lambda: START)
        self.now += 60

    def column(self, item: Object) -> BeatColumn:
        return self.budget.column(item)


@pytest.mark.parametrize(
    ("item", "answer"),
    [
        (an_item(ago=30), REFRESH),
        (an_item(ago=29), KEEP),
        (an_item(ago=-3600), KEEP),
        (an_item(ago=10, intervalSeconds=10), REFRESH),
        (an_item(ago=9, intervalSeconds=10), KEEP),
        (an_item(ago=300, health="UNRESPONSIVE"), KEEP),
        (an_item(ago=300, source="None"), KEEP),
        (an_item(ago=None), REFRESH),
        (an_item(ago=None, health="UNKNOWN"), KEEP),
        ({"spec": {}, "status": {"health": "HEALTHY"}}, KEEP),
        (an_item(ago=30, intervalSeconds="often"), KEEP),
    ],
    ids=[
        "an interval old",
        "younger",
        "from a clock that was set back since",
        "an interval of its own",
        "younger than that",
        "unresponsive: shows when it was last heard",
        "without heartbeats",
        "left out before",
        "before the first beat",
        "without an agent",
        "an interval that cannot be read",
    ],
)
def test_a_shown_beat_is_refreshed_once_it_is_an_interval_old(
    item: Object, answer: BeatColumn
) -> None:
    assert Fleet().column(item) is answer


def test_a_fleet_gets_its_writes_per_second_and_no_more() -> None:
    fleet = Fleet(size=100, rate=4.0)
    assert [fleet.column(an_item(ago=40)) for _ in range(8)] == [REFRESH] * 4 + [KEEP] * 4
    fleet.now += 0.5
    assert [fleet.column(an_item(ago=40)) for _ in range(4)] == [REFRESH] * 2 + [KEEP] * 2
    fleet.now += 3600
    assert [fleet.column(an_item(ago=40)) for _ in range(5)] == [REFRESH] * 4 + [KEEP]


def test_less_than_one_write_per_second_is_possible() -> None:
    fleet = Fleet(size=10, rate=0.5)
    assert [fleet.column(an_item(ago=40)) for _ in range(2)] == [REFRESH, KEEP]
    fleet.now += 2
    assert fleet.column(an_item(ago=40)) is REFRESH


def test_in_a_large_fleet_everybody_waits_for_a_turn() -> None:
    fleet = Fleet(size=500)
    assert fleet.column(an_item(ago=49)) is KEEP
    assert fleet.column(an_item(ago=50)) is REFRESH


def test_a_fleet_too_large_for_two_intervals_shows_nothing() -> None:
    assert Fleet(size=601).column(an_item(ago=10)) is OMIT
    assert Fleet(size=600).column(an_item(ago=10)) is KEEP


def test_without_a_budget_only_changes_of_state_are_written() -> None:
    assert Fleet(rate=0.0, size=10_000).column(an_item(ago=3600)) is KEEP
