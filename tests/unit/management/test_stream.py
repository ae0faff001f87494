"""Who may hear an event: whoever has the right to it now, not whoever had it a while ago."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from supervisor_api.access import Caller, Question
from supervisor_api.feed import Feed
from supervisor_api.problems import ProblemError
from supervisor_api.routes.stream import _check_room, _frames
from supervisor_api.service import Service
from supervisor_api.settings import Settings
from supervisor_operator.core.states import State
from supervisor_operator.errors import TransientError, UnauthorizedError
from supervisor_operator.kube.cluster import SUPERVISORS
from tests.unit.management.test_feed import a_feed, kept

pytestmark = pytest.mark.looptime
ME = cast("Caller", SimpleNamespace(digest=b"me"))
QUESTION = Question("watch", SUPERVISORS, None)
Answer = Callable[[], bool]


def a_service(feed: Feed, answer: Answer, **limits: Any) -> Service:
    async def allows(caller: Caller, question: Question) -> bool:
        assert (caller, question) == (ME, QUESTION)
        return answer()

    found: Any = SimpleNamespace(
        index=SimpleNamespace(feed=feed),
        access=SimpleNamespace(allows=allows),
        settings=Settings(**limits),
    )
    return cast("Service", found)


def refused() -> bool:
    raise UnauthorizedError("the token has been revoked", status=401)


def overloaded() -> bool:
    raise TransientError("too many requests", status=429)


def away() -> bool:
    raise TransientError("cannot be reached")


async def heard(answer: Answer) -> list[str]:
    """What is sent of one change while the API server answers like this."""
    feed = a_feed()
    reader = feed.follow(None, None)
    frames = _frames(a_service(feed, answer), ME, QUESTION, reader)
    found = [await anext(frames)]
    feed.put(kept(State.STARTING))
    reader.close()
    found += [one async for one in frames]
    return [one.decode().split("\n")[1].removeprefix("event: ") for one in found]


@pytest.mark.parametrize("answer", [lambda: False, refused, overloaded])
async def test_not_one_event_is_told_to_whom_the_right_is_not_given(answer: Answer) -> None:
    assert await heard(answer) == ["ready"]


@pytest.mark.parametrize("answer", [lambda: True, away])
async def test_a_reader_with_the_right_hears_it_also_while_the_api_server_is_away(
    answer: Answer,
) -> None:
    assert await heard(answer) == ["ready", "SupervisorAdded"]


async def test_a_quiet_stream_shows_life_and_ends_with_the_right_to_it() -> None:
    feed, answers = a_feed(), [True, True, False]
    reader = feed.follow(None, None)
    frames = _frames(a_service(feed, lambda: answers.pop(0)), ME, QUESTION, reader)
    found = [one async for one in frames]
    assert found[1:] == [b": still here\n\n"] * 2


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        ({"max_streams": 2, "max_streams_per_token": 3}, 503),
        ({"max_streams": 3, "max_streams_per_token": 2}, 429),
        ({"max_streams": 3, "max_streams_per_token": 3}, None),
    ],
)
def test_there_is_an_end_to_open_streams_in_all_and_of_one_token(
    limits: dict[str, int], status: int | None
) -> None:
    feed = a_feed()
    for _ in range(2):
        feed.follow(None, None, ME.digest)
    service = a_service(feed, lambda: True, **limits)
    if status is None:
        _check_room(service, ME)
        return
    with pytest.raises(ProblemError) as told:
        _check_room(service, ME)
    assert told.value.problem.status == status
    assert told.value.headers["Retry-After"]
