"""Operators are born here: one process has imported everything, and forks one per order.

Importing costs more CPU than all that an operator does in most tests. What is born is the program
as it is, with a pid, signals and an exit code of its own.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from tests.cluster.places import CHECKOUT
from tests.cluster.processes import start_time

LOOK_SECONDS = 0.01
KILLED = -int(signal.SIGKILL)


class Born:
    """A process that is not our child; as much of Popen as tests use."""

    def __init__(self, pid: int, log: Path) -> None:
        self.pid = pid
        self._started = start_time(pid)
        self._exit = exit_file(log, pid)

    def poll(self) -> int | None:
        if self._started is not None and start_time(self.pid) == self._started:
            return None
        return int(self._exit.read_text()) if self._exit.exists() else KILLED

    def wait(self, seconds: float) -> int:
        deadline = time.monotonic() + seconds
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"operator {self.pid}", seconds)
            time.sleep(LOOK_SECONDS)
        return code


class Nursery:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": f"{CHECKOUT / 'operator'}:{CHECKOUT}"},
        )
        self._one_order = threading.Lock()

    def bear(self, arguments: Sequence[str], log: Path) -> Born:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._one_order:  # stages strike, and start again, side by side
            print(json.dumps([*arguments, str(log)]), file=self._process.stdin, flush=True)
            return Born(int(self._process.stdout.readline()), log)

    def close(self) -> None:
        """The end of its input is its end."""
        self._process.communicate(timeout=10)


@cache
def nursery() -> Nursery:
    found = Nursery()
    atexit.register(found.close)
    return found


def exit_file(log: Path, pid: int) -> Path:
    return log.with_name(f"{log.name}.{pid}.exit")


def main() -> None:
    from supervisor_operator.__main__ import main as run

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()
    for line in sys.stdin:
        *arguments, log = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _take_over(Path(log))
            code = _exit_code(run, arguments)
            exit_file(Path(log), os.getpid()).write_text(str(code))
            os._exit(code)
        print(pid, flush=True)


def _exit_code(run: Callable[[list[str]], int], arguments: list[str]) -> int:
    """As the interpreter would have it."""
    try:
        return run(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - whatever it is, it ends this process
        traceback.print_exc()
        return 1


def _take_over(log: Path) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    random.seed()
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for old, new in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(old, new)


if __name__ == "__main__":
    main()
