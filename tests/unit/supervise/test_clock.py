"""The wall clock may jump: by an hour, either way, and nobody is ended."""

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.unit.supervise.harness import BEAT, python, running

# supervise whose wall clock has jumped as soon as there is a file named "jumped".
JUMPING = """
import os, sys
from supervise import clock
real = clock.wall
clock.wall = lambda: real() + HOUR * os.path.exists("jumped")
from supervise.__main__ import main
sys.exit(main())
"""
# Beats by the same clock, from before the jump until well past a timeout after it.
AGENT = """
import json, os, pathlib, time
def beat(jump):
    with open("draft", "w") as file:
        json.dump({"unix_ts": time.time() + jump}, file)
    os.replace("draft", "heartbeat.json")
began = time.monotonic()
while time.monotonic() < began + 2:
    jumped = time.monotonic() > began + 0.5
    if jumped:
        pathlib.Path("jumped").touch()
    beat(HOUR if jumped else 0)
    time.sleep(0.05)
"""


def test_a_jump_of_the_clock_ends_nobody(tmp_path: Path) -> None:
    with ExitStack() as stack:  # side by side, because each takes its time
        runs = {}
        for hour in (3600, -3600):
            supervise = (sys.executable, "-c", JUMPING.replace("HOUR", str(hour)))
            agent = python(AGENT.replace("HOUR", str(hour)))
            runs[hour] = stack.enter_context(
                running(tmp_path / str(hour), agent, supervise=supervise, timeout=1)
            )
        for hour, run in runs.items():
            assert run.code() == 0
            assert not run.events("stale")
            finished = run.events("finished")[0]
            started = run.events("started")[0]
            assert finished["unix_ts"] - started["unix_ts"] == pytest.approx(hour, abs=60)


def test_a_jump_of_the_clock_saves_nobody(tmp_path: Path) -> None:
    supervise = (sys.executable, "-c", JUMPING.replace("HOUR", "-3600"))
    silent = f"import pathlib, time; pathlib.Path({BEAT!r}).touch(); "
    silent += "pathlib.Path('jumped').touch(); time.sleep(60)"
    with running(tmp_path, python(silent), supervise=supervise) as run:
        assert run.code() == 1
        assert run.events("stale")
