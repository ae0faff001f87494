"""The process lives as long as its index does; and who is let in, how often."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fastapi.security import HTTPAuthorizationCredentials
from starlette.requests import Request

from supervisor_api.__main__ import _serve
from supervisor_api.access import Access, Caller
from supervisor_api.app import create_app
from supervisor_api.limits import Rate
from supervisor_api.problems import ProblemError
from supervisor_api.service import Service, get_caller
from supervisor_api.settings import Settings
from supervisor_operator.errors import UnauthorizedError
from supervisor_operator.kube.client import KubeCluster
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


async def test_made_up_tokens_are_no_way_round_the_rate() -> None:
    now = 0.0
    service: Any = SimpleNamespace(
        rate=Rate(50, 100, lambda: now),
        newcomers=Rate(20, 5, lambda: now, what="new tokens per second from one address"),
        access=Access(cast("KubeCluster", SimpleNamespace(with_token=str)), lambda: now),
    )

    async def come(token: str, address: str = "10.0.0.1") -> Caller:
        client = SimpleNamespace(host=address)
        request: Any = SimpleNamespace(client=client, state=SimpleNamespace())
        given = HTTPAuthorizationCredentials(scheme="Bearer", credentials=token)
        return await get_caller(request, service, given)

    known = await come("known")
    for number in range(4):
        await come(f"made-up-{number}")
    with pytest.raises(ProblemError, match="more than 20 new tokens per second from one address"):
        await come("made-up-5")
    assert await come("known") == known, "those who were here before are not kept out"
    await come("another", "10.0.0.2")
    now = 1.0
    await come("made-up-5")


async def test_a_refused_token_stays_new() -> None:
    rate = Rate(50, 100, lambda: 0.0)
    app = create_app(cast("Service", SimpleNamespace(settings=Settings(), rate=rate)))
    handler: Any = app.exception_handlers[UnauthorizedError]
    rate.take(b"forger")
    scope = {"type": "http", "app": app, "state": {"caller": SimpleNamespace(digest=b"forger")}}
    answer = await handler(Request(scope), UnauthorizedError("Unauthorized", status=401))
    assert answer.status_code == 401
    assert not rate.knows(b"forger")
