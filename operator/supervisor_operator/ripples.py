"""What a change of one object means for others: which keys shall be looked at, and how soon.

Whoever may have to obey is looked at now. Roll-ups to parents and teams keep a distance: the first
comes at once, then many changes below cost one write above.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from supervisor_operator.api.v1alpha1.meta import Phase
from supervisor_operator.kube.cluster import TEAMS
from supervisor_operator.kube.customs import Customs
from supervisor_operator.kube.observe import World
from supervisor_operator.queue import Key, WorkQueue

ROLL_UP_SECONDS = 5.0


def team_key(key: Key) -> Key:
    return (key[0], key[1], TEAMS.kind)


class Ripples:
    def __init__(
        self,
        queue: WorkQueue,
        supervisors: Customs,
        wall: Callable[[], datetime],
        is_settled: Callable[[Key], bool] = lambda _key: False,
    ) -> None:
        self._queue = queue
        self._supervisors = supervisors
        self._wall = wall
        self._is_settled = is_settled
        self._generations: dict[Key, int] = {}
        self._roll_ups: dict[Key, float] = {}
        self.world: World

    def on_pod(self, supervisor: Key, is_news: bool) -> None:  # noqa: FBT001 - a fact, no switch
        """Mates are told of what is no news to its own: a pod that it has just made itself."""
        if is_news:
            self._queue.add(supervisor)
        self._tell_mates(supervisor)

    def on_supervisor(self, key: Key) -> None:
        above, below = self.world.family.note(key)
        if not self._is_settled(key):  # as it is when our own last word comes back
            self._queue.add(key)
        for child in below:
            self._queue.add(child)
        for parent in above:
            self._roll_up(parent, is_urgent=self._has_failed(key))
        if self._orders(key):
            for child in self.world.family.children(key):
                self._queue.add(child)
        self._tell_mates(key)
        self._tell_teams(key)

    def on_team(self, key: Key) -> None:
        self._queue.add(team_key(key))
        if self.world.teams.is_gone(key):
            self._roll_ups.pop(team_key(key), None)
        leads, members = self.world.teams.note(key)
        for member in filter(self._supervisors.get, members):
            self._queue.add(member)
        for lead in filter(self._supervisors.get, leads):
            self._roll_up(lead, is_urgent=False)

    def _tell_mates(self, key: Key) -> None:
        for mate in self.world.teams.mates(key, self._wall()):
            self._queue.add(mate)

    def _tell_teams(self, key: Key) -> None:
        """At once where it came, went, was edited or calls for the group; else soon."""
        is_urgent = self._is_new(key) or self.world.teams.calls(key, self._wall())
        for team in self.world.teams.teams_of(key):
            self._roll_up(team_key(team), is_urgent=is_urgent)

    def _roll_up(self, above: Key, *, is_urgent: bool) -> None:
        """Now if it must be, else not before the last one is some seconds old."""
        now = asyncio.get_running_loop().time()
        last = self._roll_ups.get(above, -ROLL_UP_SECONDS)
        due = last if last > now else max(now, last + ROLL_UP_SECONDS)
        self._roll_ups[above] = due
        self._queue.add_after(above, 0.0 if is_urgent else due - now)

    def _is_new(self, key: Key) -> bool:
        item = self._supervisors.get(key)
        if item is None:
            self._generations.pop(key, None)
            self._roll_ups.pop(key, None)
            self.world.teams.forget(key)
            return True
        generation = item["metadata"].get("generation", 0)
        before = self._generations.get(key)
        self._generations[key] = generation
        return bool(before != generation)

    def _has_failed(self, key: Key) -> bool:
        item = self._supervisors.get(key)
        return bool(item and item["status"].get("phase") == Phase.FAILED)

    def _orders(self, key: Key) -> bool:
        item = self._supervisors.get(key)
        return bool(item and item["status"].get("childOrders"))
