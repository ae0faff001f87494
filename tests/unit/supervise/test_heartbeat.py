"""Heartbeat in its forms: each beats while the agent's loop turns, and stops when it hangs."""

import json
import logging
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from supervise import Heartbeat
from tests.unit.supervise.harness import BEAT, python, running, until

LOOPS = {
    "loop": """
with Heartbeat() as heart:
    while turning():
        heart.beat()
        time.sleep(0.05)
    hang()
""",
    "thread": """
with Heartbeat(thread=True) as heart:
    while turning():
        heart.beat()
        time.sleep(0.05)
    hang()
""",
    "asyncio": """
async def agent():
    async with Heartbeat() as heart:
        while turning():
            await asyncio.sleep(0.05)
        hang()
asyncio.run(agent())
""",
}
BEGIN = """
import asyncio, sys, time
from supervise import Heartbeat
end = time.monotonic() + 2
turning = lambda: time.monotonic() < end
hang = lambda: sys.argv[1:] and time.sleep(60)
"""


def test_each_form_beats_while_the_loop_turns(tmp_path: Path) -> None:
    with ExitStack() as stack:  # side by side, because each takes its time
        for run in [
            stack.enter_context(running(tmp_path / form, python(BEGIN + loop), timeout=1))
            for form, loop in LOOPS.items()
        ]:
            assert run.code() == 0, run.folder.name
            assert not run.events("stale")


def test_each_form_stops_when_the_loop_hangs(tmp_path: Path) -> None:
    begin = BEGIN.replace("+ 2", "+ 0.2")
    with ExitStack() as stack:
        for run in [
            stack.enter_context(running(tmp_path / form, python(begin + loop, "hang")))
            for form, loop in LOOPS.items()
        ]:
            assert run.code() == 1, run.folder.name
            assert "heartbeat is" in run.events("stale")[0]["message"]


def content(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_the_first_beat_is_written_on_entering(tmp_path: Path) -> None:
    with Heartbeat(tmp_path / "new" / BEAT):
        assert content(tmp_path / "new" / BEAT)["unix_ts"] > 0


def test_a_wrong_path_is_seen_at_once(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError), Heartbeat(tmp_path):
        pass


def test_metrics_are_kept_until_given_again(tmp_path: Path) -> None:
    with Heartbeat(tmp_path / BEAT, interval=1e-6) as heart:
        heart.beat({"trades": 1})
        heart.beat()
        assert content(tmp_path / BEAT)["metrics"] == {"trades": 1}
        heart.beat({"trades": 2})
        assert content(tmp_path / BEAT)["metrics"] == {"trades": 2}


def test_a_fast_loop_does_not_wear_out_the_disk(tmp_path: Path) -> None:
    with Heartbeat(tmp_path / BEAT, interval=3600) as heart:
        first = content(tmp_path / BEAT)
        for _ in range(100):
            heart.beat({"more": 1})
        assert content(tmp_path / BEAT) == first


@pytest.mark.parametrize("thread", [False, True])
@pytest.mark.parametrize("metrics", [{"text": "x" * 5000}, {"odd": float("nan")}])
def test_metrics_that_cannot_be_kept_are_refused_where_they_are_given(
    tmp_path: Path, metrics: dict[str, float | str], *, thread: bool
) -> None:
    with Heartbeat(tmp_path / BEAT, interval=1e-6, thread=thread) as heart:
        with pytest.raises(ValueError, match=r"metrics|JSON"):
            heart.beat(metrics)
        (tmp_path / BEAT).unlink()
        heart.beat()
        until((tmp_path / BEAT).exists, "the next beat is written")


def test_a_busy_step_is_announced_and_ended(tmp_path: Path) -> None:
    with Heartbeat(tmp_path / BEAT) as heart:
        with heart.busy(600):
            assert content(tmp_path / BEAT)["busy_seconds"] == pytest.approx(600, abs=30)
        assert "busy_seconds" not in content(tmp_path / BEAT)


def test_a_beat_within_a_busy_step_does_not_take_the_announcement_back(tmp_path: Path) -> None:
    with Heartbeat(tmp_path / BEAT, interval=1e-6) as heart, heart.busy(600):
        heart.beat({"within": 1})
        assert content(tmp_path / BEAT)["metrics"] == {"within": 1}
        assert content(tmp_path / BEAT)["busy_seconds"] == pytest.approx(600, abs=30)


def test_a_full_disk_is_logged_once_and_ends_no_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "logs" / BEAT
    with caplog.at_level(logging.WARNING, "supervise"), Heartbeat(path, interval=1e-6) as heart:
        path.unlink()
        path.parent.rmdir()
        path.parent.touch()  # as good as a full disk: nothing can be written there
        heart.beat()
        heart.beat()
        assert len(caplog.records) == 1
        path.parent.unlink()
        heart.beat()
        assert path.exists()
