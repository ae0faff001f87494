"""The sample agents do what they say, also as the first process of a container."""

import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from supervise import beatfile
from tests.unit.supervise.harness import (
    BEAT,
    PACKAGES,
    children,
    in_a_container,
    running,
    started,
    until,
)

AGENTS = PACKAGES.parent / "manifests" / "agents"
PYTHON = (sys.executable, str(AGENTS / "agent.py"))
SHELL = ("sh", str(AGENTS / "agent.sh"))
LIVE = {"python": (*PYTHON, "beat"), "shell": SHELL}


def test_each_mode_ends_as_it_says(tmp_path: Path) -> None:
    ends = {  # mode: exit code of supervise, its last event, how the agent ended
        "freeze-after": (1, "gave-up", "ended by SIGKILL"),
        "crash-after": (1, "gave-up", "ended with exit code 1"),
        "finish-after": (0, "finished", "finished with exit code 0"),
    }
    with ExitStack() as stack:
        for run in [
            stack.enter_context(running(tmp_path / mode, (*PYTHON, mode, "0.5"))) for mode in ends
        ]:
            mode = run.folder.name
            code, event, message = ends[mode]
            assert run.code() == code
            last = run.events()[-1]
            assert last["event"] == event
            assert last["message"].startswith(message)
            assert bool(run.events("stale")) == (mode == "freeze-after")


def test_a_busy_agent_is_left_in_peace_as_far_as_it_announced_it(tmp_path: Path) -> None:
    with running(tmp_path, (*PYTHON, "busy", "1.2"), max_busy_seconds=5) as run:
        turns = until(
            lambda: (beatfile.read(tmp_path / BEAT).metrics or {}).get("turn", 0) > 1,
            "the turn after a busy one",
        )
        assert turns
        assert not run.events("stale")


@pytest.mark.parametrize("kind", LIVE)
def test_it_beats_until_it_is_stopped(tmp_path: Path, kind: str) -> None:
    with running(tmp_path, LIVE[kind], kill_after=15) as run:
        first = until(lambda: beatfile.read(tmp_path / BEAT).beat, "a beat")
        until(lambda: beatfile.read(tmp_path / BEAT).beat != first, "another beat")
        run.send(signal.SIGTERM)
        assert run.code() == 0
        assert not run.events("killing")


@pytest.mark.parametrize("kind", LIVE)
def test_as_pid_1_it_ends_when_its_container_is_stopped(tmp_path: Path, kind: str) -> None:
    variables = {"SUPERVISION_HEARTBEAT_FILE": BEAT, "SUPERVISION_INTERVAL_SECONDS": "0.2"}
    with started(tmp_path, [*in_a_container(), *LIVE[kind]], variables) as run:
        until((tmp_path / BEAT).exists, "a beat")
        [first] = children(run.process.pid)
        os.kill(first, signal.SIGTERM)
        assert run.code() == 0


def test_a_wrong_word_is_answered_with_the_modes(tmp_path: Path) -> None:
    with started(tmp_path, [*PYTHON, "dance"], {}) as run:
        assert run.code() == 1
        assert "agent.py freeze-after N" in run.told
