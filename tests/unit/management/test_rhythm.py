"""Beats as the API remembers them, and those that were missed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from supervisor_api.rhythm import HELD, SHOWN, Rhythm, Run, Stroke, missed, run_of

START = datetime(2026, 1, 1, tzinfo=UTC)
INTERVAL = timedelta(seconds=10)
AGENT = ("shop", "trader")


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def beats(*seconds: float, run: int = 1) -> list[Stroke]:
    return [Stroke(at(one), run) for one in seconds]


@pytest.mark.parametrize(
    ("strokes", "runs", "due"),
    [
        (beats(0, 10, 20.4), [Run(1, at(24))], []),
        (beats(0, 10), [Run(1, at(35))], [20, 30]),
        (beats(0, 31, 40), [], [10, 20]),
        (beats(0) + beats(40, run=2), [Run(1, at(27))], [10, 20]),
        (beats(0) + beats(40, run=2), [Run(2, at(41))], []),
        ([], [Run(1, at(100))], []),
    ],
    ids=["late is no miss", "silent now", "silent before", "hung and ended", "end unknown", "new"],
)
def test_a_beat_is_missed_where_the_next_comes_half_an_interval_late(
    strokes: list[Stroke], runs: list[Run], due: list[float]
) -> None:
    assert missed(strokes, INTERVAL, runs) == [at(one) for one in due]


def test_of_a_silence_of_days_the_latest_misses_are_enough() -> None:
    found = missed(beats(0), INTERVAL, [Run(1, at(1_000_000))])
    assert len(found) == SHOWN
    assert at(1_000_000) - found[-1] <= INTERVAL


def test_the_same_beat_told_again_is_one_and_only_the_latest_are_held() -> None:
    rhythm = Rhythm()
    for number, stroke in enumerate(beats(0, 10)):
        rhythm.put(AGENT, stroke, number)
        rhythm.put(AGENT, Stroke(stroke.time + timedelta(seconds=0.1), 1), number)
    assert [one.time for one in rhythm.of(AGENT)] == [at(0), at(10)]
    for number, stroke in enumerate(beats(*range(2 * HELD), run=2)):
        rhythm.put(AGENT, stroke, number)
    assert len(rhythm.of(AGENT)) == HELD
    rhythm.drop(AGENT)
    assert rhythm.of(AGENT) == []


@pytest.mark.parametrize(("pod", "run"), [("a-r12", 12), ("a-r1-r2", 2), ("a", 0), ("a-rx", 0)])
def test_the_run_is_in_the_name_of_the_pod(pod: str, run: int) -> None:
    assert run_of(pod) == run
