"""Events as the API tells them, whoever wrote them and in whichever form."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from supervisor_api.routes.history import _told

MADE = "2026-01-01T10:00:00Z"
POD = {"kind": "Pod", "name": "trader-r1"}


@pytest.mark.parametrize(
    ("fields", "minute", "count"),
    [
        ({"eventTime": "2026-01-01T10:01:00.5Z"}, 1, 1),
        (
            {
                "eventTime": "2026-01-01T10:01:00Z",
                "series": {"count": 4, "lastObservedTime": "2026-01-01T10:02:00Z"},
            },
            2,
            4,
        ),
        ({"deprecatedLastTimestamp": "2026-01-01T10:03:00Z", "deprecatedCount": 7}, 3, 7),
        ({"eventTime": None, "series": None}, 0, 1),
    ],
    ids=["ours", "repeated", "of the kubelet", "without a time"],
)
def test_when_and_how_often(fields: dict[str, Any], minute: int, count: int) -> None:
    item = {"metadata": {"creationTimestamp": MADE}, "reason": "Pulled", "regarding": POD} | fields
    found = _told(item)
    assert found.time.replace(microsecond=0) == datetime(2026, 1, 1, 10, minute, tzinfo=UTC)
    assert (found.count, found.about, found.type) == (count, "Pod trader-r1", "Normal")
