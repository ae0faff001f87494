"""The snapshot and its stream: versions, resumption, gaps, and readers who are too slow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from supervisor_api.feed import Feed, Message
from supervisor_api.keeping import Kept, keep_supervisor
from supervisor_api.limits import Rate
from supervisor_api.problems import ProblemError
from supervisor_api.selector import Selector
from supervisor_operator.core.states import State
from supervisor_operator.subscription import Gap, Subscription
from tests.support.health_stories import STORIES, told


def kept(state: State, name: str = "hello", namespace: str = "default", **more: Any) -> Kept:
    item = told(STORIES[state]()).item
    item["metadata"] |= {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"}
    item["metadata"] |= more
    return keep_supervisor(item)


def a_feed(**sizes: int) -> Feed:
    feed = Feed("e", **sizes)
    feed.live = True
    return feed


async def read(reader: Subscription[Message]) -> list[str]:
    """The types of what waits; a gap as such."""
    reader.close()
    found = [one async for one in reader]
    return ["gap" if isinstance(one, Gap) else kind_of(one) for one in found]


def kind_of(message: Message) -> str:
    return message.frame.decode().split("\n")[1].removeprefix("event: ")


def test_a_version_shows_the_same_for_ever_and_grows_only_with_changes() -> None:
    feed = a_feed()
    feed.put(kept(State.STARTING))
    first = feed.snapshot(None)
    assert json.loads(first)["version"] == feed.version == 1
    feed.put(kept(State.STARTING))
    assert feed.snapshot(None) is first, "nothing that is shown has changed"
    feed.put(kept(State.RUNNING))
    assert json.loads(feed.snapshot(None))["supervisors"][0]["phase"] == "ACTIVE"
    assert json.loads(first)["supervisors"][0]["phase"] == "SPAWNING"
    feed.drop(("default", "hello"))
    assert json.loads(feed.snapshot(None)) == {"version": 3, "eventId": "e-3", "supervisors": []}


async def test_a_reader_hears_the_operators_own_words_of_change() -> None:
    feed = a_feed()
    reader = feed.follow(None, None)
    feed.put(kept(State.STARTING))
    feed.put(kept(State.RUNNING))
    feed.put(kept(State.UNRESPONSIVE))
    feed.put(kept(State.UNRESPONSIVE, uid="another"))
    feed.drop(("default", "hello"))
    assert await read(reader) == [
        "SupervisorAdded",
        "SupervisorStateChanged",
        "SupervisorConnected",
        "SupervisorStateChanged",
        "SupervisorDisconnected",
        "SupervisorRemoved",
        "SupervisorAdded",
        "SupervisorRemoved",
    ]


async def test_one_namespace_hears_and_sees_nothing_of_another() -> None:
    feed = a_feed()
    reader = feed.follow("mine", None)
    feed.put(kept(State.RUNNING, namespace="theirs"))
    feed.put(kept(State.STARTING, namespace="mine"))
    assert await read(reader) == ["SupervisorAdded"]
    (seen,) = json.loads(feed.snapshot("mine"))["supervisors"]
    assert seen["namespace"] == "mine"


async def test_who_comes_back_goes_on_where_he_was() -> None:
    feed = a_feed()
    feed.put(kept(State.STARTING))
    since = feed.event_id
    feed.put(kept(State.RUNNING))
    assert await read(feed.follow(None, since)) == [
        "SupervisorStateChanged",
        "SupervisorConnected",
    ]
    within = f"{feed.event_id}-0"
    assert await read(feed.follow(None, within)) == ["SupervisorConnected"], "half of a version"
    assert await read(feed.follow(None, feed.event_id)) == []


@pytest.mark.parametrize("stale", ["other-1", "e-99", "nonsense", "e-0"])
async def test_what_is_not_held_any_more_is_a_gap(stale: str) -> None:
    feed = a_feed(held=2)
    for number in range(4):
        feed.put(kept(State.STARTING, f"agent-{number}"))
    assert await read(feed.follow(None, stale)) == ["gap"]
    assert await read(feed.follow(None, "e-2")) == ["SupervisorAdded", "SupervisorAdded"]


async def test_a_slow_reader_is_told_of_the_gap_and_holds_up_nobody() -> None:
    feed = a_feed(waiting=2)
    slow, quick = feed.follow(None, None), feed.follow(None, None)
    heard = 0
    for number in range(5):
        feed.put(kept(State.STARTING, f"agent-{number}"))
        assert isinstance(await anext(quick), Message)
        heard += 1
    assert heard == 5
    assert await read(slow) == ["SupervisorAdded", "SupervisorAdded", "gap"]
    assert feed.readers == 1


async def test_readers_are_counted_by_their_token() -> None:
    feed = a_feed()
    first, _second = feed.follow(None, None, b"a"), feed.follow("mine", None, b"a")
    feed.follow(None, None, b"b")
    assert (feed.readers, feed.readers_of(b"a"), feed.readers_of(b"b")) == (3, 2, 1)
    first.close()
    assert (feed.readers, feed.readers_of(b"a")) == (2, 1)


def test_questions_about_made_up_namespaces_fill_no_memory() -> None:
    feed = a_feed()
    feed.put(kept(State.RUNNING))
    for number in range(100):
        feed.snapshot(f"made-up-{number}")
    assert feed.snapshot("default") is feed.snapshot("default")
    assert len(feed._taken) == 1


def test_filling_the_index_tells_nobody_and_cannot_be_resumed_from() -> None:
    feed = Feed("e")
    feed.put(kept(State.STARTING))
    feed.live = True
    assert feed.version == 1
    assert feed.follow(None, "e-0")._waiting[0] == Gap(1)


def test_so_many_requests_a_second_and_no_more() -> None:
    now = 0.0
    rate = Rate(2, 3, lambda: now)
    for _ in range(3):
        rate.take(b"a")
    with pytest.raises(ProblemError, match="more than 2 requests") as refused:
        rate.take(b"a")
    assert refused.value.headers["Retry-After"] == "1"
    rate.take(b"b")
    now = 0.5
    rate.take(b"a")


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("", True),
        ("app=x", True),
        ("app==x,env!=prod", True),
        ("app,!old", True),
        ("app=y", False),
        ("!app", False),
        ("env=", False),
        ("app in (x,y),tier", True),
        ("app in ( y , x )", True),
        ("tier notin (1,2)", False),
        ("env notin (prod)", True),
        ("app in (y), tier in (1)", False),
    ],
)
def test_selectors(text: str, taken: bool) -> None:  # noqa: FBT001 - a column of the table
    assert Selector.parse(text).takes({"app": "x", "tier": "1"}) is taken


def test_a_selector_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ProblemError, match="allowed are key=value") as refused:
        Selector.parse("app in x")
    assert refused.value.problem.errors
    assert refused.value.problem.errors[0].field == "query.labelSelector"
