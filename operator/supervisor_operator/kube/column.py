"""The HEARTBEAT column: status.lastHeartbeatTime, refreshed under a budget for the whole fleet.

Writing a status per beat would cost more than the beats themselves. Where the fleet is so large
that the budget cannot keep the column within two intervals, it is left out rather than shown stale.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from pydantic import ValidationError

from supervisor_operator.api.v1alpha1.agent import HeartbeatPolicy
from supervisor_operator.api.v1alpha1.policies import HeartbeatSource
from supervisor_operator.core.observed import BeatColumn
from supervisor_operator.kube.cluster import Object
from supervisor_operator.queue import Key

BURST_SECONDS = 1.0


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

    def column(self, _key: Key, item: Object) -> BeatColumn:
        policy = _policy(item["spec"])
        if not self._rate or policy is None or policy.source is HeartbeatSource.NONE:
            return BeatColumn.KEEP
        interval = policy.interval_seconds
        turn = self._fleet() / self._rate
        if turn > 2 * interval:
            return BeatColumn.OMIT
        if item["status"].get("health") != "HEALTHY":
            return BeatColumn.KEEP
        is_due = self._age(item["status"]) >= max(interval, turn)
        return BeatColumn.REFRESH if is_due and self._take() else BeatColumn.KEEP

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


def _policy(spec: Object) -> HeartbeatPolicy | None:
    """None: nobody beats, or the stored object cannot be read, which OBSERVE will tell."""
    if "agent" not in spec:
        return None
    try:
        return HeartbeatPolicy.model_validate(spec.get("heartbeat") or {})
    except ValidationError:
        return None
