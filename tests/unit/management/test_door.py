"""The door of `kubectl supervisor page`: one browser comes in, and no token goes out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from supervisor_cli.door import CODE_SECONDS, Door

TOKEN = "kubernetes-token"  # noqa: S105 - made up
Seen = list[tuple[str, str]]


class House:
    """A door, what it leads to, and somebody who knocks."""

    def __init__(self, door: Door, client: aiohttp.ClientSession, seen: Seen) -> None:
        self.door = door
        self.client = client
        self.seen = seen
        self.now = 0.0

    async def ask(self, path: str, method: str = "GET", **more: Any) -> tuple[int, str]:
        async with self.client.request(method, self.door.address + path, **more) as answer:
            return answer.status, await answer.text()

    async def sign_in(self, code: str = "", origin: str = "") -> tuple[int, str]:
        headers = {"Origin": origin or self.door.address.rstrip("/")}
        body = code or self.door.link.partition("#code=")[2]
        return await self.ask("signin", "POST", data=body, headers=headers)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    seen: Seen = []

    async def api(request: web.Request) -> web.Response:
        seen.append((request.path_qs, request.headers.get("Authorization", "")))
        return web.json_response({"fine": True}, headers={"Set-Cookie": "a=b", "ETag": '"1"'})

    behind = web.Application()
    behind.router.add_route("*", "/{path:.*}", api)

    async def bearer() -> dict[str, str]:
        return {"Authorization": f"Bearer {TOKEN}"}

    async with TestServer(behind) as server, aiohttp.ClientSession() as client:
        base = str(server.make_url("")).rstrip("/")
        found = House(None, client, seen)  # type: ignore[arg-type] # made below, with its clock
        found.door = Door(lambda: base, bearer, namespace="shop", clock=lambda: found.now)
        async with TestServer(found.door.application()) as front:
            found.door.port = int(front.port or 0)
            yield found


async def test_the_code_gives_a_pass_once_and_the_pass_is_changed_for_the_token(
    house: House,
) -> None:
    status, text = await house.sign_in()
    assert status == 200
    assert TOKEN not in text
    given = json.loads(text)
    assert given["namespace"] == "shop"
    headers = {"Authorization": f"Bearer {given['token']}"}
    assert (await house.ask("api/v1/snapshot?namespace=a%2Fb", headers=headers))[0] == 200
    assert house.seen == [("/api/v1/snapshot?namespace=a/b", f"Bearer {TOKEN}")]
    assert (await house.sign_in())[0] == 403, "it works once"


async def test_without_the_pass_there_are_files_only(house: House) -> None:
    assert (await house.ask("main.js"))[0] == 200
    assert house.seen == [("/main.js", "")]
    for wrong in ("Bearer x", f"Bearer {TOKEN}", "Basic eA=="):
        assert (await house.ask("api/v1/snapshot", headers={"Authorization": wrong}))[0] == 401
    assert len(house.seen) == 1


async def test_a_stranger_is_refused_and_spoils_the_code(house: House) -> None:
    host = f"evil.example:{house.door.port}"
    assert (await house.ask("main.js", headers={"Host": host}))[0] == 403
    assert (await house.sign_in(origin="http://evil.example"))[0] == 403
    assert (await house.sign_in())[0] == 403


@pytest.mark.parametrize("code", ["wrong", "x" * 1000])
async def test_a_wrong_code_ends_it(house: House, code: str) -> None:
    assert (await house.sign_in(code))[0] == 403
    assert (await house.sign_in())[0] == 403


async def test_an_old_code_is_no_good(house: House) -> None:
    house.now = CODE_SECONDS
    assert (await house.sign_in())[0] == 403


async def test_an_api_that_is_away_is_told(house: House) -> None:
    house.door._target = lambda: "http://127.0.0.1:1"
    status, text = await house.ask("main.js")
    assert status == 502
    assert "the management API is away" in text
    house.door._target = lambda: str(house.door.address).rstrip("/")


async def test_no_cookie_comes_through(house: House) -> None:
    async with house.client.get(house.door.address) as answer:
        assert "Set-Cookie" not in answer.headers
        assert answer.headers["ETag"] == '"1"'
