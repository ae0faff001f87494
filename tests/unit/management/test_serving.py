"""The process: it lives as long as its index does, and leaves its signals as they were."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from supervisor_api.__main__ import _serve
from supervisor_api.service import Service
from supervisor_api.settings import Settings
from tests.unit.management.test_feed import a_feed


async def test_it_ends_with_an_error_where_the_index_ends(caplog: pytest.LogCaptureFixture) -> None:
    """Else it would answer 503 for ever, and its liveness probe would be content."""
    settings, feed = Settings(port=0), a_feed()
    reader = feed.follow(None, None)
    found: Any = SimpleNamespace(settings=settings, index=SimpleNamespace(feed=feed))

    async def end() -> None:
        await asyncio.sleep(0)
        raise KeyError("what nobody thought of")

    filling = asyncio.create_task(end())
    async with asyncio.timeout(30):
        assert await _serve(settings, cast("Service", found), filling) == 1
    assert "what nobody thought of" in caplog.text
    assert [one async for one in reader] == [], "and whoever followed it is told by the end"
