"""The judgement of silence, look by look."""

import pytest

from supervise.beatfile import Beat, Sighting
from supervise.watch import Limits, Look, Watch, spell

START = 1_000_000.0
LIMITS = Limits(timeout=30, startup=60, check_interval=2, max_busy=100)
NOTHING = Sighting()


def look(at: float, sighting: Sighting = NOTHING, jump: float = 0) -> Look:
    return Look(at, START + at + jump, sighting)


def beat(at: float, busy: float = 0) -> Sighting:
    return Sighting(Beat((START + at,), START + at, busy_seconds=busy))


def watch(*looks: Look) -> Watch:
    watched = Watch(LIMITS, looks[0])
    for each in looks[1:]:
        watched.see(each)
    return watched


def steps(first: int, last: int, sighting: Sighting = NOTHING, jump: float = 0) -> list[Look]:
    return [look(at, sighting, jump) for at in range(first, last + 1, 2)]


def test_without_a_beat_the_startup_time_counts() -> None:
    assert watch(*steps(0, 60)).silence() is None
    silence = watch(*steps(0, 62)).silence()
    assert silence
    assert silence.spelled() == "no heartbeat within 60 s of the start"


def test_after_the_first_beat_the_timeout_counts() -> None:
    looks = [look(0), look(2, beat(1)), *steps(4, 30, beat(1))]
    assert watch(*looks).silence() is None
    silence = watch(*looks, look(32, beat(1))).silence()
    assert silence
    assert silence.spelled() == "heartbeat is 31 s old (limit 30 s)"


def test_a_beat_seen_late_is_as_old_as_it_says() -> None:
    silence = watch(*steps(0, 50), look(52, beat(10))).silence()
    assert silence
    assert silence.seconds == pytest.approx(42, abs=0.1)


def test_the_file_of_an_earlier_agent_is_no_beat() -> None:
    assert watch(*steps(0, 40, beat(-1))).silence() is None
    assert watch(look(0), *steps(2, 40, beat(-10))).silence() is None


def test_a_beat_that_does_not_count_is_told() -> None:
    watched = watch(look(0))
    assert watched.see(look(2, beat(-10))) == "has a time before the start of the agent"
    assert watched.see(look(4, beat(3))) == ""
    assert watched.see(look(6, beat(600))) == "has a time in the future"


def test_time_in_which_nobody_looked_is_no_silence() -> None:
    looks = [look(0), look(2, beat(2)), look(5000, beat(2))]
    assert watch(*looks).silence() is None
    assert watch(*looks, *steps(5002, 5040, beat(2))).silence()


def test_a_file_that_cannot_be_seen_is_no_silence() -> None:
    blind = Sighting(problem="is not a regular file", blind=True)
    assert watch(look(0), look(2, beat(2)), *steps(4, 500, blind)).silence() is None


@pytest.mark.parametrize("hour", [3600, -3600])
def test_a_jump_just_before_a_beat_is_seen_makes_it_no_older(hour: float) -> None:
    looks = [look(0), look(2, beat(2)), look(4, beat(3), jump=hour)]
    assert watch(*looks, *steps(6, 32, beat(3), jump=hour)).silence() is None
    assert watch(*looks, *steps(6, 40, beat(3), jump=hour)).silence()


@pytest.mark.parametrize(("announced", "limit"), [(50, 80), (5000, 130)])
def test_busy_seconds_extend_the_timeout_up_to_their_limit(announced: float, limit: int) -> None:
    busy = beat(2, announced)
    assert watch(look(0), *steps(2, limit, busy)).silence() is None
    assert watch(look(0), *steps(2, limit + 4, busy)).silence()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.66, "0.7 s"), (5, "5 s"), (31.2, "31 s"), (310, "5 min 10 s"), (7380, "2 h 3 min")],
)
def test_durations_are_spelled_as_people_say_them(seconds: float, words: str) -> None:
    assert spell(seconds) == words
