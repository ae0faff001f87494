"""The operator as a real process, as tests start, signal and end it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Self

from tests.cluster.places import CHECKOUT
from tests.support.nursery import Born, nursery

READY_SECONDS = 60.0
LOOK_SECONDS = 0.02
PORT = re.compile(r"metrics on port (\d+)")
QUICK = ("--leader-elect=false", "--http-port=0", "--resync-seconds=2", "--log-level=debug")


class OperatorProcess:
    """Started with `start`, ended with `stop` (SIGTERM) or `kill` (SIGKILL), and again."""

    def __init__(self, kubeconfig: Path, log: Path, *flags: str, born: bool = True) -> None:
        """`born=False` starts the program from nothing, where that is part of what is measured."""
        self.log_file = log
        self._born = born
        self._arguments = [f"--kubeconfig={kubeconfig}", *QUICK, *flags]
        self._process: Born | subprocess.Popen[bytes] | None = None
        self._log_start = 0

    def __enter__(self) -> Self:
        """Started and ready; killed with the context."""
        return self.start().ready()

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """What the process that was started last has said so far."""
        return self.log_file.read_text()[self._log_start :]

    def start(self) -> Self:
        self.log_file.touch()
        self._log_start = len(self.log_file.read_text())
        self._process = (
            nursery().bear(self._arguments, self.log_file) if self._born else self._from_nothing()
        )
        return self

    def _from_nothing(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "supervisor_operator", *self._arguments]
        environment = os.environ | {"PYTHONPATH": str(CHECKOUT / "operator")}
        with self.log_file.open("ab") as output:
            return subprocess.Popen(command, stdout=output, stderr=output, env=environment)

    def ready(self) -> Self:
        """Wait until all of its stores are synced."""
        self.until(lambda: "all stores are synced" in self.log)
        return self

    def until(self, condition: Callable[[], bool], seconds: float = READY_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert self._process is not None
            assert self._process.poll() is None, f"the operator ended: {self.log[-2000:]}"
            assert time.monotonic() < deadline, f"not within {seconds} s: {self.log[-2000:]}"
            time.sleep(LOOK_SECONDS)

    def get(self, path: str) -> str:
        found = PORT.search(self.log)
        assert found, self.log
        url = f"http://127.0.0.1:{found[1]}{path}"
        with urllib.request.urlopen(url, timeout=5) as answer:
            text: str = answer.read().decode()
        return text

    def passes(self) -> int:
        """How often it has looked at Supervisors."""
        lines = self.get("/metrics").splitlines()
        start = 'supervisor_operator_reconcile_total{kind="Supervisor"'
        return sum(int(float(line.split()[-1])) for line in lines if line.startswith(start))

    def let_pass(self, count: int = 5) -> None:
        """Wait until it has looked so often again."""
        done = self.passes()
        self.until(lambda: self.passes() >= done + count)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait_end(self, seconds: float = READY_SECONDS) -> int:
        assert self._process is not None
        return self._process.wait(seconds)

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait_end(10)

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.signal(signal.SIGKILL)
            self.wait_end(10)
