"""The snapshot and its stream: what changed, in order, for readers who may come late or be slow.

An event's id is `epoch-version-number`. The epoch is this process: ids of another one, and ids
that are older than what is still held, lead to a gap, after which a reader takes a snapshot. A
reader that is too slow gets a gap too and is dropped; nobody waits for it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass

from supervisor_api.keeping import Kept, pack
from supervisor_operator.kube.store import Key
from supervisor_operator.snapshot import EventType, changes
from supervisor_operator.subscription import Gap, Subscription

HELD = 4096
WAITING = 256
EVENT_ID = re.compile(r"([0-9a-z]+)-(\d{1,18})(?:-(\d{1,9}))?")
Place = tuple[int, float]
"""Version, and number of the event within it."""
ALL = float("inf")


@dataclass(frozen=True, slots=True)
class Message:
    place: Place
    namespace: str
    frame: bytes


@dataclass(frozen=True, slots=True)
class Reader:
    """Who follows, and which namespace; None for all."""

    who: bytes
    namespace: str | None


class Feed:
    def __init__(self, epoch: str, *, held: int = HELD, waiting: int = WAITING) -> None:
        self.epoch = epoch
        self.version = 0
        self.live = False
        """Before that the index is only filled, and nobody is told."""
        self._waiting = waiting
        self._agents: dict[Key, Kept] = {}
        self._order: list[Key] = []
        self._ring: deque[Message] = deque(maxlen=held)
        self._forgotten: Place = (0, ALL)
        self._readers: dict[Subscription[Message], Reader] = {}
        self._taken: dict[str | None, bytes] = {}

    def put(self, kept: Kept) -> None:
        known = self._agents.get(kept.key)
        if known and known.uid != kept.uid:
            self.drop(kept.key)
            known = None
        if known is None:
            insort(self._order, kept.key)
        self._agents[kept.key] = kept
        if known and known.brief == kept.brief:
            return
        self._turn()
        for number, kind in enumerate(_kinds(known, kept)):
            self._tell(kind, number, kept)

    def drop(self, key: Key) -> None:
        known = self._agents.pop(key, None)
        if known is None:
            return
        del self._order[bisect_left(self._order, key)]
        self._turn()
        self._tell(EventType.REMOVED, 0, known)

    def snapshot(self, namespace: str | None) -> bytes:
        """Made once per version, however many read it."""
        found = self._taken.get(namespace)
        if found is None:
            briefs = b",".join(
                self._agents[key].brief for key in self._order if namespace in {None, key[0]}
            )
            head = pack({"version": self.version, "eventId": self.event_id})[:-1]
            found = head + b',"supervisors":[' + briefs + b"]}"
            if briefs or namespace is None:  # who asks for made-up names fills no memory
                self._taken[namespace] = found
        return found

    @property
    def event_id(self) -> str:
        return f"{self.epoch}-{self.version}"

    @property
    def readers(self) -> int:
        return len(self._readers)

    def readers_of(self, who: bytes) -> int:
        return sum(reader.who == who for reader in self._readers.values())

    def follow(
        self, namespace: str | None, after: str | None, who: bytes = b""
    ) -> Subscription[Message]:
        """Events from now on, or all after this id; those that are not held any more are a gap."""
        found = Subscription[Message](self._waiting, self._leave)
        self._readers[found] = Reader(who, namespace)
        place = self._place(after) if after else (self.version, ALL)
        if place is None or place < self._forgotten:
            found.push_gap(Gap(self.version))
            return found
        for message in self._ring:
            if message.place > place and namespace in {None, message.namespace}:
                found.push(message, Gap(self.version))
        return found

    def close(self) -> None:
        for reader in list(self._readers):
            reader.close()

    def _leave(self, reader: Subscription[Message]) -> None:
        self._readers.pop(reader, None)

    def _place(self, event_id: str) -> Place | None:
        found = EVENT_ID.fullmatch(event_id)
        if found is None or found[1] != self.epoch or int(found[2]) > self.version:
            return None
        return int(found[2]), int(found[3]) if found[3] else ALL

    def _turn(self) -> None:
        self.version += 1
        self._taken.clear()

    def _tell(self, kind: EventType, number: int, kept: Kept) -> None:
        if not self.live:
            self._forgotten = (self.version, ALL)
            return
        message = Message((self.version, number), kept.key[0], self._frame(kind, number, kept))
        if len(self._ring) == self._ring.maxlen:
            self._forgotten = self._ring[0].place
        self._ring.append(message)
        for subscription, reader in self._readers.items():
            if reader.namespace in {None, kept.key[0]}:
                subscription.push(message, Gap(self.version))

    def _frame(self, kind: EventType, number: int, kept: Kept) -> bytes:
        head = pack({"type": kind, "version": self.version})[:-1]
        data = head + b',"supervisor":' + kept.brief + b"}"
        return frame(kind, data, f"{self.event_id}-{number}")


def frame(kind: str, data: bytes, event_id: str) -> bytes:
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (event_id.encode(), kind.encode(), data)


def _kinds(known: Kept | None, kept: Kept) -> list[EventType]:
    """The operator's own rules; a change that they have no word for is another finished pass."""
    if kept.state is None:
        return []
    before = known.state if known else None
    words = (before.actual.phase, before.actual.health) if before else (None, None)
    return list(changes(before, kept.state, words)) or [EventType.COMPLETE]
