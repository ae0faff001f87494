"""Odd heartbeat files: told once, and nobody is ended for them while beats go on."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from supervise import beatfile
from tests.unit.supervise.harness import BEAT, SUPERVISE, Run, powerless_root, python, running

# Beats for twice the timeout by what stands in the place of %s, then finishes.
AGENT = """
import json, os, pathlib, sys, time
file = pathlib.Path("heartbeat.json")
def overwrite(text):
    with file.open("r+" if file.exists() else "w") as opened:
        opened.write(text)
end = time.monotonic() + 2
while time.monotonic() < end:
    %s
    time.sleep(0.05)
"""
ODD = {
    "half-written": ("""overwrite('{"unix_ts": 17'); os.utime(file)""", "is not whole JSON"),
    "huge": ("overwrite(' ' * 70_000)", "is larger than 64 KiB"),
    "future": (
        """overwrite(json.dumps({"unix_ts": int(time.time() * 1000)}))""",
        "has a time in the future",
    ),
    "no number": (
        """overwrite('{"unix_ts": "now"}'); os.utime(file)""",
        "has a unix_ts that is no number",
    ),
    "unreadable": (
        "file.exists() or file.touch(mode=0); os.utime(file)",
        "cannot be read (Permission denied)",
    ),
    "directory": ("file.mkdir(exist_ok=True)", "is not a regular file"),
    "pipe": ("file.exists() or os.mkfifo(file)", "is not a regular file"),
    "loop": ("file.is_symlink() or file.symlink_to(file)", "cannot be looked at"),
}


def told_once(run: Run, problem: str) -> None:
    assert run.code() == 0
    assert not run.events("stale")
    messages = [event["message"] for event in run.events("problem")]
    assert len(messages) == 1
    assert messages[0].startswith(f"heartbeat file {BEAT} {problem}")


def test_they_are_told_once_and_end_nobody(tmp_path: Path) -> None:
    supervise = (*powerless_root(), *SUPERVISE)
    with ExitStack() as stack:  # side by side, because each takes its time
        runs = {}
        for kind, (step, problem) in ODD.items():
            folder = tmp_path / kind
            folder.mkdir()
            agent = python(AGENT % step)
            watched = running(folder, agent, supervise=supervise, timeout=1, startup_seconds=1.5)
            runs[stack.enter_context(watched)] = problem
        for run, problem in runs.items():
            told_once(run, problem)


def test_a_half_written_file_that_stays_so_is_silence(tmp_path: Path) -> None:
    step = """file.exists() or overwrite('{"unix_ts": 17')"""
    with running(tmp_path, python((AGENT % step).replace("+ 2", "+ 60"))) as run:
        assert run.code() == 1
        assert run.events("stale")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"alive",
        b"[1]",
        b"{",
        b"{}",
        b"{\xff\xfe}",
        b'{"a":' * 30_000,
        b'{"unix_ts": null}',
        b'{"unix_ts": true}',
        b'{"unix_ts": NaN}',
        b'{"unix_ts": 1e999}',
        b'{"unix_ts": ' + b"9" * 4000 + b"}",
        b'{"unix_ts": ' + b"9" * 40_000 + b"}",
        b'{"busy_seconds": "long"}',
        b'{"busy_seconds": -5}',
    ],
    ids=lambda content: repr(content[:24]),
)
def test_any_content_leaves_the_time_of_the_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / BEAT
    path.write_bytes(content)
    beat = beatfile.read(path).beat
    assert beat
    assert beat.unix_ts == path.stat().st_mtime
    assert beat.busy_seconds == 0
