"""Only processes of ours are ended, and all of them are."""

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.cluster.processes import Book, Process, end, marked, start_time

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
DEAF_PROGRAM = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(60)
"""
DEAF = [sys.executable, "-c", DEAF_PROGRAM]


def test_a_number_used_again_by_another_process_is_left_alone(tmp_path: Path) -> None:
    process = Book(tmp_path).start("sleeper", SLEEP)
    end(dataclasses.replace(process, started=process.started - 1))
    assert process.alive
    end(process)
    assert not process.alive


def test_what_was_not_written_down_is_found_by_its_mark(tmp_path: Path) -> None:
    book = Book(tmp_path)
    process = book.start("sleeper", SLEEP)
    (tmp_path / "processes.jsonl").unlink()
    assert [found.pid for found in marked(tmp_path)] == [process.pid]
    book.stop_all()
    assert not process.alive


def test_behind_one_that_forks_and_waits_its_child_is_the_one_written_down(tmp_path: Path) -> None:
    book = Book(tmp_path)
    process = book.start_behind("sleeper", ["unshare", "--fork", *SLEEP])
    assert b"time.sleep" in Path(f"/proc/{process.pid}/cmdline").read_bytes()
    assert book.read() == [process]
    end(process)
    book.stop_all()
    assert marked(tmp_path) == []


def test_of_one_started_again_the_newest_counts(tmp_path: Path) -> None:
    book = Book(tmp_path)
    first = book.start("sleeper", SLEEP)
    book.start("other", SLEEP)
    end(book.find("sleeper"))
    second = book.start("sleeper", first.command)
    assert [process.name for process in book.read()] == ["sleeper", "other"]
    assert book.find("sleeper") == second
    book.stop_all()
    assert not second.alive


def test_half_a_line_in_the_book_is_passed_over(tmp_path: Path) -> None:
    book = Book(tmp_path)
    process = book.start("sleeper", SLEEP)
    with (tmp_path / "processes.jsonl").open("a") as file:
        file.write('{"name": "half')
    assert book.read() == [process]
    book.stop_all()


def test_one_that_ignores_sigterm_is_killed() -> None:
    child = subprocess.Popen(DEAF, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    end(Process("deaf", child.pid, start_time(child.pid) or 0), patience=0.2)
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL


def test_a_zombie_counts_as_gone() -> None:
    child = subprocess.Popen(SLEEP)
    started = start_time(child.pid)
    assert started
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not Process("zombie", child.pid, started).alive
    child.wait()
