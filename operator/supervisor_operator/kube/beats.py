"""When each agent was last heard, by our own clock: a beat moves a number here and wakes nobody.

Remote clocks are never compared. A beat counts from the moment we saw it minus the age it came
with; what the first LIST shows counts as seen then, but not as seen to arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from sys import intern
from typing import Any

from supervisor_operator.core.heartbeat import RELAY_SLACK_SECONDS
from supervisor_operator.core.observed import BeatView
from supervisor_operator.kube.cluster import Object

Key = tuple[str, str]
MAX_AGE_SECONDS = 365 * 86400.0


@dataclass(slots=True)
class _Record:
    """`mark` tells one beat from the next: a relay that starts anew may count from 1 again."""

    name: str
    namespace: str
    interval: float
    mark: tuple[Any, ...] = (None, None)
    beat_at: float | None = None
    relay_at: float | None = None
    word: tuple[Any, ...] = ()
    busy_seconds: float = 0.0
    metrics: dict[str, object] | None = None
    problem: str = ""
    first_hand: bool = False
    missing: bool = False
    allowed_from: float = float("-inf")


class BeatBook:
    """`live` turns true once the first LIST is in: from then on beats are seen to arrive."""

    def __init__(
        self, clock: Callable[[], float], on_beat: Callable[[float], None] = lambda _age: None
    ) -> None:
        self.live = False
        self._clock = clock
        self._on_beat = on_beat
        self._records: dict[str, _Record] = {}
        self._uids: dict[Key, str] = {}

    def __len__(self) -> int:
        return len(self._records)

    def note(self, kind: str, item: Object) -> bool:
        """Take a change as the reflector or a live GET shows it; tells whether it was news."""
        uid = item.get("spec", {}).get("podUID")
        if kind == "DELETED":
            key = (item["metadata"].get("namespace", ""), item["metadata"]["name"])
            self._gone(str(uid) if uid else self._uids.get(key, ""))
            return True
        return self._heard(str(uid), item) if uid else False

    def view(self, pod_uid: str, now: float, *, confirmed: bool = False) -> BeatView | None:
        found = self._records.get(pod_uid)
        if found is None:
            return None
        relay_at = found.relay_at
        return BeatView(
            silence=_silence(found, now),
            relay_silence=None if relay_at is None else max(0.0, now - relay_at),
            busy_seconds=found.busy_seconds,
            confirmed=confirmed,
            first_hand=found.first_hand,
            missing=found.missing,
            metrics=found.metrics,
            problem=found.problem,
        )

    def silence(self, pod_uid: str, now: float) -> float | None:
        """None where there is no beat yet, or no Heartbeat to tell of one."""
        found = self._records.get(pod_uid)
        return None if found is None or found.missing else _silence(found, now)

    def allow(self, pod_uid: str, now: float) -> None:
        """One full silence allowance from now on, as after a pause."""
        if found := self._records.get(pod_uid):
            found.allowed_from = now

    def shift(self, seconds: float) -> None:
        """We were blind for so long: nobody's silence in that time is held against him."""
        now = self._clock()
        for found in self._records.values():
            if found.beat_at is not None:
                found.beat_at = min(now, found.beat_at + seconds)
            if found.relay_at is not None:
                found.relay_at = min(now, found.relay_at + seconds)
            found.allowed_from = min(now, found.allowed_from + seconds)

    def forget(self, pod_uid: str) -> None:
        found = self._records.pop(pod_uid, None)
        if found and self._uids.get((found.namespace, found.name)) == pod_uid:
            del self._uids[found.namespace, found.name]

    def forget_name(self, key: Key) -> None:
        """Its pod is gone too: a word that came late shall leave no record behind."""
        self.forget(self._uids.get(key, ""))

    def count(self, namespace: str) -> tuple[int, int]:
        """Agents of the namespace that are silent together with their relays, and all that beat."""
        now = self._clock()
        all_of = [
            found
            for found in self._records.values()
            if found.namespace == namespace and found.beat_at is not None and not found.missing
        ]
        return sum(_is_silent(found, now) for found in all_of), len(all_of)

    def _gone(self, uid: str) -> None:
        if found := self._records.get(uid):
            found.missing = True

    def _heard(self, uid: str, item: Object) -> bool:
        is_news = uid not in self._records
        record, now = self._record(uid, item), self._clock()
        if record.missing:
            is_news = True
            record.missing, record.allowed_from = False, now
        status = item.get("status") or {}
        mark = (status.get("sequence"), status.get("beatTime"))
        age = min(max(status.get("beatAgeMillis") or 0, 0) / 1000, MAX_AGE_SECONDS)
        word = (*mark, status.get("relayTime"), status.get("beatAgeMillis"))
        if status and word != record.word:
            record.word, record.relay_at = word, now
            record.problem = status.get("problem") or ""
            if mark != (None, None):
                self._beat(record, mark, age, status)
            return True
        return is_news

    def _beat(self, record: _Record, mark: tuple[Any, ...], age: float, status: Object) -> None:
        if mark != record.mark:
            record.mark, record.first_hand = mark, self.live
            self._on_beat(age)
        record.beat_at = self._clock() - age
        record.busy_seconds = float(status.get("busySeconds") or 0)
        record.metrics = status.get("metrics")

    def _record(self, uid: str, item: Object) -> _Record:
        found = self._records.get(uid)
        if found is None:
            metadata = item["metadata"]
            key = (intern(metadata.get("namespace", "")), intern(metadata["name"]))
            uid = intern(uid)
            interval = float(item["spec"].get("intervalSeconds") or 1)
            found = self._records[uid] = _Record(key[1], key[0], interval)
            self._uids[key] = uid
        return found


def _silence(record: _Record, now: float) -> float | None:
    if record.beat_at is None:
        return None
    beat_at = now if record.missing else max(record.beat_at, record.allowed_from)
    return max(0.0, now - beat_at)


def _is_silent(record: _Record, now: float) -> bool:
    """By half of the usual allowance: a storm must be known before its first verdict."""
    heard = max(record.relay_at or 0.0, record.allowed_from)
    return now - heard >= 2 * record.interval + RELAY_SLACK_SECONDS
