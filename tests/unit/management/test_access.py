"""What the API server said of a token: for seconds, for that token and that question only."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from supervisor_api.access import REMEMBER_SECONDS, Access, Question
from supervisor_operator.errors import ForbiddenError, UnauthorizedError
from supervisor_operator.kube.client import KubeCluster
from supervisor_operator.kube.cluster import HEARTBEATS, SUPERVISORS

HERE = Question("list", SUPERVISORS, "here")


@dataclass(slots=True)
class Server:
    """Stands for the API server: says yes to these pairs of token and namespace."""

    yes: set[tuple[str, str | None]] = field(default_factory=set)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    open: asyncio.Event = field(default_factory=asyncio.Event)
    now: float = 0.0

    def with_token(self, token: str) -> Any:
        return Client(self, token)

    def access(self, size: int = 100) -> Access:
        self.open.set()
        return Access(cast("KubeCluster", self), lambda: self.now, size=size)


@dataclass(frozen=True, slots=True)
class Client:
    server: Server
    token: str

    async def create(self, _resource: Any, _namespace: None, body: Any) -> Any:
        wanted = body["spec"]["resourceAttributes"]
        self.server.asked.append((self.token, wanted))
        await self.server.open.wait()
        if self.token == "forged":  # noqa: S105 - nobody's
            raise UnauthorizedError("Unauthorized", status=401)
        return {"status": {"allowed": (self.token, wanted.get("namespace")) in self.server.yes}}

    async def list(self, _resource: Any, namespace: str | None) -> Any:
        raise ForbiddenError(f"{self.token} may not list in {namespace}", status=403)


async def test_an_answer_counts_for_seconds_and_then_no_longer() -> None:
    server = Server({("mine", "here")})
    access = server.access()
    me = access.caller("mine")
    for _ in range(3):
        await access.require(me, HERE)
    assert len(server.asked) == 1
    server.yes.clear()
    server.now = REMEMBER_SECONDS - 0.1
    assert await access.allows(me, HERE)
    server.now = REMEMBER_SECONDS + 0.1
    with pytest.raises(ForbiddenError, match="mine may not list in here"):
        await access.require(me, HERE)


async def test_nobody_lives_on_anothers_answer_nor_on_one_to_another_question() -> None:
    server = Server({("mine", "here")})
    access = server.access()
    await access.require(access.caller("mine"), HERE)
    assert not await access.allows(access.caller("theirs"), HERE)
    for other in (
        Question("list", SUPERVISORS, None),
        Question("list", SUPERVISORS, "there"),
        Question("watch", SUPERVISORS, "here"),
        Question("list", HEARTBEATS, "here"),
        Question("list", SUPERVISORS, "here", "one"),
    ):
        before = len(server.asked)
        await access.allows(access.caller("mine"), other)
        assert len(server.asked) == before + 1, other


async def test_what_is_asked_is_what_is_needed() -> None:
    server = Server({("mine", "here")})
    access = server.access()
    await access.allows(access.caller("mine"), Question("get", SUPERVISORS, "here", "one"))
    assert server.asked == [
        (
            "mine",
            {
                "verb": "get",
                "group": "supervision.dev",
                "version": "v1alpha1",
                "resource": "supervisors",
                "namespace": "here",
                "name": "one",
            },
        )
    ]


async def test_many_who_ask_at_once_are_one_question_and_one_may_leave() -> None:
    server = Server({("mine", "here")})
    access = server.access()
    server.open.clear()
    asking = [asyncio.create_task(access.allows(access.caller("mine"), HERE)) for _ in range(3)]
    await asyncio.sleep(0)
    asking[0].cancel()
    server.open.set()
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert found[1:] == [True, True]
    assert len(server.asked) == 1


async def test_a_refused_token_is_not_remembered_and_fills_no_memory() -> None:
    server = Server({("mine", None)})
    access = server.access(size=3)
    with pytest.raises(UnauthorizedError):
        await access.require(access.caller("forged"), HERE)
    assert not access._known
    for number in range(10):
        await access.allows(access.caller(f"token-{number}"), HERE)
    assert len(access._known) == 3


def test_no_token_is_kept() -> None:
    caller = Server().access().caller("hunter2")
    assert b"hunter2" not in caller.digest
