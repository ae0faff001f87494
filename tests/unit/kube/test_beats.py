"""The book of beats: ages by our own clock, and nobody's silence for what we did not hear."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from supervisor_operator.core.observed import BeatView
from supervisor_operator.kube.beats import MAX_AGE_SECONDS, BeatBook
from supervisor_operator.kube.cluster import Object

START = 1000.0


def a_heartbeat(
    name: str = "hello-r1", pod: str = "pod-1", *, namespace: str = "default", **status: Any
) -> Object:
    item: Object = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"podUID": pod, "intervalSeconds": 10},
    }
    return item | {"status": status} if status else item


@dataclass(slots=True)
class Listener:
    """The operator at its book, with a clock that stands still until told otherwise."""

    now: float = START
    ages: list[float] = field(default_factory=list)
    book: BeatBook = field(init=False)

    def __post_init__(self) -> None:
        self.book = BeatBook(lambda: self.now, self.ages.append)
        self.book.live = True

    def hears(self, item: Object, kind: str = "MODIFIED") -> None:
        self.book.note(kind, item)

    def beat(self, pod: str = "pod-1", **more: Any) -> None:
        self.hears(a_heartbeat(f"of-{pod}", pod, **more))

    def view(self, pod: str = "pod-1") -> BeatView:
        found = self.book.view(pod, self.now)
        assert found
        return found


@pytest.fixture
def listener() -> Listener:
    return Listener()


def test_nothing_is_known_of_a_pod_without_a_heartbeat(listener: Listener) -> None:
    assert listener.book.view("pod-1", START) is None


def test_a_heartbeat_without_status_is_there_but_silent(listener: Listener) -> None:
    listener.hears(a_heartbeat(), "ADDED")
    view = listener.view()
    assert (view.silence, view.relay_silence, view.missing) == (None, None, False)


def test_silence_counts_from_the_moment_it_was_seen_minus_the_age_it_came_with(
    listener: Listener,
) -> None:
    listener.beat(sequence=1, beatAgeMillis=2500)
    listener.now += 7
    view = listener.view()
    assert view.silence == pytest.approx(9.5)
    assert view.relay_silence == pytest.approx(7)
    assert listener.ages == [2.5]


@pytest.mark.parametrize(
    ("millis", "seconds"),
    [(-5000, 0.0), (None, 0.0), (10**15, MAX_AGE_SECONDS)],
    ids=["from the future", "without an age", "older than any agent"],
)
def test_an_age_that_cannot_be_is_cut(
    listener: Listener, millis: int | None, seconds: float
) -> None:
    listener.beat(sequence=1, beatAgeMillis=millis)
    assert listener.view().silence == pytest.approx(seconds)


def test_what_the_first_list_shows_was_not_seen_to_arrive(listener: Listener) -> None:
    listener.book.live = False
    listener.beat(sequence=5, beatAgeMillis=1000)
    listener.book.live = True
    assert listener.view().silence == pytest.approx(1)
    assert not listener.view().first_hand
    listener.beat(sequence=5, beatAgeMillis=3000)
    assert not listener.view().first_hand, "the relay spoke, but the agent did not beat"
    listener.beat(sequence=6, beatAgeMillis=0)
    assert listener.view().first_hand


def test_a_relay_that_counts_from_one_again_brings_new_beats(listener: Listener) -> None:
    listener.beat(sequence=700, beatAgeMillis=0)
    listener.now += 30
    listener.beat(sequence=1, beatAgeMillis=0)
    assert listener.view().silence == 0
    assert len(listener.ages) == 2


def test_the_same_beat_told_again_with_its_age_is_no_new_beat(listener: Listener) -> None:
    listener.beat(sequence=3, beatAgeMillis=0, relayTime="t0")
    listener.now += 10
    listener.beat(sequence=3, beatAgeMillis=10_000, relayTime="t1")
    view = listener.view()
    assert (view.silence, view.relay_silence) == (10, 0)
    assert listener.ages == [0]


def test_the_same_word_twice_moves_nothing(listener: Listener) -> None:
    listener.beat(sequence=3, beatAgeMillis=0)
    listener.now += 10
    listener.beat(sequence=3, beatAgeMillis=0)
    assert (listener.view().silence, listener.view().relay_silence) == (10, 10)


def test_a_beat_by_its_time_alone_counts(listener: Listener) -> None:
    listener.beat(beatTime="2026-01-01T00:00:00Z")
    listener.now += 10
    assert listener.view().silence == 10
    listener.beat(beatTime="2026-01-01T00:00:10Z")
    assert listener.view().silence == 0


def test_a_relay_that_cannot_read_a_beat_is_heard_all_the_same(listener: Listener) -> None:
    listener.beat(relayTime="t0", problem="no such file")
    listener.now += 4
    view = listener.view()
    assert (view.silence, view.relay_silence) == (None, 4)
    assert view.problem == "no such file"
    listener.beat(relayTime="t1", sequence=1, beatAgeMillis=0)
    assert listener.view().problem == ""


def test_a_beat_brings_metrics_and_how_long_the_agent_will_be_busy(listener: Listener) -> None:
    listener.beat(sequence=1, metrics={"orders": 3}, busySeconds=90)
    assert listener.view().metrics == {"orders": 3}
    assert listener.view().busy_seconds == 90
    listener.beat(sequence=2)
    assert listener.view().busy_seconds == 0


def test_a_heartbeat_deleted_by_hand_is_missing_and_silence_starts_anew_with_the_next(
    listener: Listener,
) -> None:
    listener.beat(sequence=1)
    listener.now += 100
    listener.hears(a_heartbeat("of-pod-1"), "DELETED")
    assert (listener.view().missing, listener.view().silence) == (True, 0)
    listener.now += 50
    assert listener.view().silence == 0
    listener.hears(a_heartbeat("of-pod-1"), "ADDED")
    listener.now += 3
    assert (listener.view().missing, listener.view().silence) == (False, 3)


def test_a_deletion_found_by_a_list_shows_the_name_only(listener: Listener) -> None:
    listener.beat(sequence=1)
    listener.hears({"metadata": {"name": "of-pod-1", "namespace": "default"}}, "DELETED")
    assert listener.view().missing


def test_the_late_news_of_a_former_heartbeats_end_does_not_concern_its_namesake(
    listener: Listener,
) -> None:
    listener.hears(a_heartbeat("hello-r1", "former", sequence=1))
    listener.hears(a_heartbeat("hello-r1", "present"), "ADDED")
    listener.hears(a_heartbeat("hello-r1", "former", sequence=1), "DELETED")
    assert listener.view("former").missing
    assert not listener.view("present").missing


def test_the_end_of_a_heartbeat_nobody_knew_is_no_news(listener: Listener) -> None:
    listener.hears(a_heartbeat(), "DELETED")
    assert len(listener.book) == 0


def test_a_new_pod_never_inherits_a_beat(listener: Listener) -> None:
    listener.hears(a_heartbeat("hello-r1", "former", sequence=1))
    listener.hears(a_heartbeat("hello-r1", "present"), "ADDED")
    assert listener.view("present").silence is None


def test_a_forgotten_pod_leaves_nothing_behind_and_its_namesake_alone(listener: Listener) -> None:
    listener.hears(a_heartbeat("hello-r1", "former", sequence=1))
    listener.hears(a_heartbeat("hello-r1", "present", sequence=1))
    listener.book.forget("former")
    listener.book.forget("former")
    assert listener.book.view("former", START) is None
    listener.hears({"metadata": {"name": "hello-r1", "namespace": "default"}}, "DELETED")
    assert listener.view("present").missing
    listener.book.forget("present")
    assert not listener.book._uids


def test_what_we_did_not_hear_is_held_against_nobody(listener: Listener) -> None:
    listener.beat(sequence=1, beatAgeMillis=5000)
    listener.now += 100
    listener.book.shift(40)
    assert (listener.view().silence, listener.view().relay_silence) == (65, 60)


def test_a_gap_never_moves_a_beat_beyond_now(listener: Listener) -> None:
    listener.beat(sequence=1)
    listener.now += 10
    listener.book.shift(3600)
    assert (listener.view().silence, listener.view().relay_silence) == (0, 0)
    listener.now += 10
    assert listener.view().silence == 10


def test_a_gap_does_not_make_a_beat_of_none(listener: Listener) -> None:
    listener.hears(a_heartbeat(pod="pod-1"), "ADDED")
    listener.book.shift(40)
    assert (listener.view().silence, listener.view().relay_silence) == (None, None)


def test_after_a_pause_there_is_one_full_allowance_and_a_gap_moves_it_too(
    listener: Listener,
) -> None:
    listener.beat(sequence=1)
    listener.now += 500
    listener.book.allow("pod-1", listener.now)
    listener.book.allow("stranger", listener.now)
    listener.now += 30
    assert listener.view().silence == 30
    listener.book.shift(20)
    assert listener.view().silence == 10


def test_the_storm_guard_counts_who_is_silent_together_with_the_relay(listener: Listener) -> None:
    for pod in ("silent", "heard", "relayed"):
        listener.beat(pod, sequence=1)
    listener.beat("elsewhere", namespace="other", sequence=1)
    listener.hears(a_heartbeat("newborn", "newborn"), "ADDED")
    listener.now += 22
    listener.beat("heard", sequence=2)
    listener.beat("relayed", sequence=1, beatAgeMillis=22_000)
    assert listener.book.count("default") == (1, 3)
    assert listener.book.count("other") == (1, 1)
    assert listener.book.count("nowhere") == (0, 0)


def test_one_moment_earlier_nobody_counts_as_silent(listener: Listener) -> None:
    listener.beat(sequence=1)
    listener.now += 21.9
    assert listener.book.count("default") == (0, 1)


def test_missing_heartbeats_and_those_just_allowed_silence_are_no_storm(
    listener: Listener,
) -> None:
    for pod in ("missing", "allowed"):
        listener.beat(pod, sequence=1)
    listener.now += 100
    listener.hears(a_heartbeat("of-missing", "missing"), "DELETED")
    listener.book.allow("allowed", listener.now)
    assert listener.book.count("default") == (0, 1)


def test_a_heartbeat_that_names_no_pod_is_nobodys(listener: Listener) -> None:
    listener.hears({"metadata": {"name": "odd", "namespace": "default"}, "spec": {}}, "ADDED")
    assert len(listener.book) == 0


def test_a_view_says_whether_it_was_confirmed(listener: Listener) -> None:
    listener.beat(sequence=1)
    found = listener.book.view("pod-1", START, confirmed=True)
    assert found
    assert found.confirmed
    assert not listener.view().confirmed


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_an_agents_clock_that_is_an_hour_off_changes_nothing(
    listener: Listener, hours: int
) -> None:
    """The times in a Heartbeat are for people: only its age and our own clock count."""
    clock = datetime(2026, 11, 18, 12, tzinfo=UTC) + timedelta(hours=hours)
    for number in range(1, 4):
        stamp = (clock + timedelta(seconds=10 * number)).isoformat()
        listener.beat(sequence=number, beatAgeMillis=500, beatTime=stamp, relayTime=stamp)
        listener.now += 10
    assert listener.view().silence == 10.5
    assert listener.view().relay_silence == 10


def test_news_is_what_the_book_did_not_know(listener: Listener) -> None:
    created, beaten = a_heartbeat(), a_heartbeat(sequence=1, beatAgeMillis=0)
    told = [
        listener.book.note(kind, item)
        for kind, item in (
            ("ADDED", created),
            ("ADDED", created),
            ("MODIFIED", beaten),
            ("MODIFIED", beaten),
            ("DELETED", beaten),
            ("ADDED", created),
        )
    ]
    assert told == [True, False, True, False, True, True]
