"""When an agent counts as silent, and that it is ended then."""

import json
import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.unit.supervise.harness import BEAT, Run, python, running, shell

BEATING = f"echo $$ >pid; while :; do touch {BEAT}; sleep 0.05; done"
BUSY = f"""
import json, time
json.dump({{"unix_ts": time.time()}}, open({BEAT!r}, "w"))
open("pid", "w").write("ready\\n")
while True:
    pass
"""
# The mock frozen agent: it checks in with a time of 40 seconds ago and does nothing more.
FROZEN = """
import time; import json; from pathlib import Path
Path('logs').mkdir(exist_ok=True)
with open('logs/heartbeat.json', 'w') as f: json.dump({'unix_ts': time.time() - 40}, f)
print('I am a frozen agent checking in with old timestamp', flush=True)
time.sleep(60)
"""


def ended_as_silent(run: Run) -> None:
    assert run.code() == 1
    assert len(run.events("stale")) == 1
    assert run.survivors() == []


def test_an_agent_frozen_by_a_stop_signal_is_ended(tmp_path: Path) -> None:
    with running(tmp_path, python(BUSY.replace("pass", "time.sleep(1)")), timeout=1) as run:
        run.until_file("pid")
        agent = run.until_event("started")["pid"]
        os.kill(agent, signal.SIGSTOP)
        ended_as_silent(run)
        assert "ended by SIGTERM" in run.events("gave-up")[0]["message"]


def test_a_beating_agent_that_freezes_is_restarted_and_may_finish(tmp_path: Path) -> None:
    program = f"test -e pid && exit 0; {BEATING}"
    with running(tmp_path, shell(program), timeout=1, max_restarts=1) as run:
        run.until_file("pid")
        os.kill(run.until_event("started")["pid"], signal.SIGSTOP)
        assert run.code() == 0
        assert [event["restart"] for event in run.events("restarting")] == [1]


def test_a_busy_loop_that_never_beats_again_is_ended(tmp_path: Path) -> None:
    with running(tmp_path, python(BUSY)) as run:
        ended_as_silent(run)
        stale = run.events("stale")[0]
        assert stale["silence"] > stale["limit"] == 0.6
        assert stale["message"].startswith("heartbeat is ")


def test_the_mock_frozen_agent_is_ended_after_the_startup_time(tmp_path: Path) -> None:
    with running(
        tmp_path, python(FROZEN), heartbeat_file="logs/heartbeat.json", startup_seconds=1.5
    ) as run:
        ended_as_silent(run)
        assert "I am a frozen agent" in run.said
        assert "no heartbeat within 1.5 s of the start" in run.events("stale")[0]["message"]
        [problem] = run.events("problem")
        assert problem["message"].endswith("has a time before the start of the agent")


def test_each_silence_has_its_limit(tmp_path: Path) -> None:
    """A missing file and a beat from before the start: the time for a start counts."""
    silent = shell("sleep 60")
    busy = shell(f"""echo '{{"busy_seconds": 3600}}' >{BEAT}; sleep 60""")
    (tmp_path / "earlier").mkdir()
    (tmp_path / "earlier" / BEAT).write_text(
        json.dumps({"unix_ts": time.time() - 10})  # noqa: TID251 - beats carry wall-clock times
    )
    limits = {
        running(tmp_path / "missing", silent, timeout=0.1, startup_seconds=1.2): 1.2,
        running(tmp_path / "not given", silent, timeout=0.6, startup_seconds=False): 0.6,
        running(tmp_path / "earlier", silent, timeout=3600, startup_seconds=0.6): 0.6,
        running(tmp_path / "announced", busy, timeout=0.6, max_busy_seconds=0.5): 1.1,
    }
    with ExitStack() as stack:  # side by side, because each takes its time
        for run, limit in [(stack.enter_context(each), limits[each]) for each in limits]:
            ended_as_silent(run)
            [stale] = run.events("stale")
            assert stale["limit"] == pytest.approx(limit), run.folder.name
            assert stale["unix_ts"] - run.events("started")[0]["unix_ts"] > limit - 0.1
            no_beat = stale["message"].startswith(f"no heartbeat within {limit} s of the start")
            assert no_beat == (run.folder.name != "announced")


def test_a_fresh_beat_of_an_earlier_agent_does_not_end_the_startup_time(tmp_path: Path) -> None:
    (tmp_path / BEAT).write_text(json.dumps({"unix_ts": time.time()}))  # noqa: TID251
    with running(tmp_path, shell("sleep 1.5"), timeout=0.2, startup_seconds=15) as run:
        assert run.code() == 0
        assert not run.events("stale")


def test_touching_the_file_is_beating(tmp_path: Path) -> None:
    program = f"for i in $(seq 15); do touch {BEAT}; sleep 0.1; done"
    with running(tmp_path, shell(program), timeout=1) as run:
        assert run.code() == 0
