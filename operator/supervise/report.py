"""What the relay writes into the status of its Heartbeat, and the newest beat it writes of.

A merge patch: a field left out stays, None removes. Nothing here does IO or reads a clock.
"""

import math
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from supervise import beatfile
from supervise.contract import MAX_METRICS_BYTES, MAX_PROBLEM_LENGTH
from supervise.watch import Arrival, Look

DAY = 86_400.0  # the longest interval there is; an older beat says nothing about an agent
MOST_BUSY = 1_000_000_000


class Newest(NamedTuple):
    """The newest beat; its times are those of the beat itself, not of its sighting."""

    number: int
    monotonic: float
    wall: float
    busy_seconds: float
    metrics: dict[str, Any] | None
    problems: tuple[str, ...]


def newest(number: int, arrival: Arrival, look: Look) -> Newest:
    age, problem = arrival.age, arrival.problem
    if age > DAY:
        age, problem = 0.0, "has a time of more than a day ago"
    metrics, unfit = _fit(look.sighting.metrics)
    return Newest(
        number,
        look.monotonic - age,
        look.wall - age,
        arrival.beat.busy_seconds,
        metrics,
        tuple(each for each in (problem, unfit) if each),
    )


def _fit(metrics: Any) -> tuple[dict[str, Any] | None, str]:
    """Return the metrics if the API server can take them, else why not."""
    if metrics is None:
        return None, ""
    if not isinstance(metrics, dict):
        return None, "has metrics that are no object"
    try:
        beatfile.check(metrics)
    except (ValueError, RecursionError):
        return (
            None,
            f"has metrics over {MAX_METRICS_BYTES // 1024} KiB, or NaN in them, or too deep",
        )
    return metrics, ""


def without_beat(wall: float, problems: Iterable[str]) -> dict[str, Any]:
    text = "; ".join(problems)
    return {"relayTime": _rfc3339(wall), "problem": text[:MAX_PROBLEM_LENGTH] or None}


def with_beat(
    beat: Newest, sequence: int, age: float, stored: Any, report: dict[str, Any]
) -> dict[str, Any]:
    """Return the report with this beat; `stored` are the metrics that the API server has."""
    return {
        **report,
        "sequence": sequence,
        "beatAgeMillis": int(max(age, 0.0) * 1000),
        "beatTime": _rfc3339(beat.wall),
        "busySeconds": min(math.ceil(beat.busy_seconds), MOST_BUSY) or None,
        "metrics": _replacing(stored, beat.metrics),
    }


def _replacing(old: Any, new: Any) -> Any:
    """Return the merge patch that makes new of old, however deep they differ."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    gone = dict.fromkeys(key for key in old if key not in new)
    return {**gone, **{key: _replacing(old.get(key), value) for key, value in new.items()}}


def _rfc3339(wall: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(wall))
