"""The HEARTBEAT column: status.lastHeartbeatTime, refreshed under a budget for the whole fleet.

Writing a status per beat would cost more than the beats themselves. Where the fleet is so large
that the budget cannot keep the column within two intervals, it is left out rather than shown stale.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from supervisor_operator.api.v1alpha1.agent import HeartbeatPolicy
from supervisor_operator.api.v1alpha1.policies import HeartbeatSource
from supervisor_operator.core.observed import BeatColumn
from supervisor_operator.kube.cluster import Object

BURST_SECONDS = 1.0
USUAL = HeartbeatPolicy()


class ColumnBudget:
    def __init__(
        self,
        writes_per_second: float,
        fleet: Callable[[], int],
        clock: Callable[[], float],
        wall: Callable[[], datetime],
    ) -> None:
        self._rate = writes_per_second
        self._fleet = fleet
        self._clock = clock
        self._wall = wall
        self._tokens = 0.0
        self._filled = clock()

    def column(self, item: Object) -> BeatColumn:
        wanted = self._wanted(item)
        if wanted is BeatColumn.REFRESH and not self._take():
            return BeatColumn.KEEP
        return wanted

    def is_due(self, item: Object) -> bool:
        """Whether the column is to change, as soon as the budget allows."""
        wanted = self._wanted(item)
        is_shown = "lastHeartbeatTime" in item["status"]
        return wanted is BeatColumn.REFRESH or (wanted is BeatColumn.OMIT and is_shown)

    def _wanted(self, item: Object) -> BeatColumn:
        interval = _interval(item["spec"])
        if not self._rate or interval is None:
            return BeatColumn.KEEP
        turn = self._fleet() / self._rate
        if turn > 2 * interval:
            return BeatColumn.OMIT
        if item["status"].get("health") != "HEALTHY":
            return BeatColumn.KEEP
        is_due = self._age(item["status"]) >= max(interval, turn)
        return BeatColumn.REFRESH if is_due else BeatColumn.KEEP

    def _age(self, status: Object) -> float:
        """Of what is shown; a column that was left out is due at once."""
        shown = status.get("lastHeartbeatTime")
        if not shown:
            return float("inf")
        return (self._wall() - datetime.fromisoformat(shown)).total_seconds()

    def _take(self) -> bool:
        now = self._clock()
        most = max(1.0, self._rate * BURST_SECONDS)
        self._tokens = min(most, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def _interval(spec: Object) -> float | None:
    """None: nobody beats, or the stored object cannot be read, which OBSERVE will tell."""
    beat = spec.get("heartbeat") or {}
    if "agent" not in spec or not isinstance(beat, dict):
        return None
    if beat.get("source") == HeartbeatSource.NONE:
        return None
    interval = beat.get("intervalSeconds", USUAL.interval_seconds)
    return interval if isinstance(interval, int) and interval > 0 else None
