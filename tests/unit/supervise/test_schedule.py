"""When the relay reports, by the numbers."""

import pytest

from supervise.schedule import Schedule

LOOK = 1.0


def schedule(interval: float = 30) -> Schedule:
    return Schedule(interval, LOOK, now=0)


def first_due(found: Schedule, *, news: bool) -> float:
    """Return the first tenth of a second at which a report is due."""
    return next(tenth / 10 for tenth in range(100_000) if found.due(tenth / 10, news=news))


def test_the_first_beat_is_reported_at_once_and_its_absence_after_an_interval() -> None:
    assert first_due(schedule(), news=True) == 0
    assert first_due(schedule(), news=False) == 30


def test_the_next_beat_waits_half_an_interval_and_silence_a_whole_one_and_a_look() -> None:
    for _ in range(100):
        found = schedule()
        found.succeeded(0)
        assert 15 <= first_due(found, news=True) <= 16.6
        assert 31 <= first_due(found, news=False) <= 34.1


def test_relays_that_started_together_do_not_stay_together() -> None:
    dues = set()
    for _ in range(100):
        found = schedule()
        found.succeeded(0)
        dues.add(first_due(found, news=False))
    assert len(dues) > 10


@pytest.mark.parametrize("interval", [1, 30])
def test_after_failures_it_tries_ever_more_seldom_but_once_an_interval(interval: float) -> None:
    found = schedule(interval)
    waits = []
    now = 0.0
    for _ in range(30):
        found.failed(now)
        due = first_due(found, news=True)
        assert due == first_due(found, news=False)
        waits.append(due - now)
        now = due
    assert waits[0] <= 0.6
    assert max(waits) <= interval + 0.1
    assert min(waits[10:]) >= interval / 2 - 0.1
    found.succeeded(now)
    found.failed(now)
    assert first_due(found, news=True) - now <= 0.6
