"""Troubles that the test proxy can make besides refusing: lost answers, delays, views of the past.

Each is a small value that a test keeps to change or end it.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from yarl import URL

from tests.support.api_call import Call

Rule = Callable[[Call], bool]
Fate = Literal["fine", "refused", "broken", "lost"]
UNWELL = (429, 500, 503, 504)
RETRY_AFTER_SECONDS = 1


@dataclass(slots=True)
class Loss:
    """The server does what was asked, and the answer never arrives."""

    rule: Rule
    times: int | None
    lost: int = 0

    def takes(self, call: Call) -> bool:
        if (self.times is not None and self.lost >= self.times) or not self.rule(call):
            return False
        self.lost += 1
        return True


@dataclass(slots=True)
class Delay:
    """Answers come so many seconds late; 0 ends it."""

    rule: Rule
    seconds: float


@dataclass(slots=True)
class Unrest:
    """A share of all requests fails: refused, broken on the way there, or its answer lost."""

    rate: float
    seed: int
    rule: Rule = lambda _call: True
    fates: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - the same troubles for one seed

    _random: random.Random = field(init=False)

    def fate(self, call: Call) -> tuple[Fate, int]:
        """What becomes of this call, and the status where it is refused."""
        found: Fate = "fine"
        if self.rate and self.rule(call) and self._random.random() < self.rate:
            found = self._random.choices(("refused", "broken", "lost"), (4, 1, 1))[0]
        self.fates[found] += 1
        return found, self._random.choice(UNWELL)

    @property
    def failed(self) -> int:
        return sum(count for fate, count in self.fates.items() if fate != "fine")


def at_revision(url: URL, revision: str) -> URL:
    """The same LIST of a moment in the past; the pages that follow carry it themselves."""
    if "continue" in url.query:
        return url
    kept = {name: value for name, value in url.query.items() if not name.startswith("resourceV")}
    past = {"resourceVersion": revision, "resourceVersionMatch": "Exact"}
    return url.with_query(kept | past)


def shuffled(body: bytes, seed: int) -> bytes:
    """A LIST with its items in another order."""
    found: dict[str, Any] = json.loads(body)
    random.Random(seed).shuffle(found.get("items") or [])  # noqa: S311 - the same order again
    return json.dumps(found).encode()


def name_in(line: bytes) -> str:
    """Whom an event of a watch is about; empty for a bookmark or an error."""
    event = json.loads(line)
    if event["type"] in {"BOOKMARK", "ERROR"}:
        return ""
    return str(event["object"]["metadata"]["name"])


def longest(delays: Iterable[Delay], call: Call) -> float:
    return max((delay.seconds for delay in delays if delay.rule(call)), default=0.0)
