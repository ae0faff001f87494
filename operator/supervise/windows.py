"""Processes on Windows. Written from the documentation and unproven: see docs/supervise.md.

Windows knows no signals between processes. A new process group makes Ctrl+Break a polite request
to the agent alone, and `taskkill /F /T` ends it together with its living descendants.
"""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

from supervise.machine import STOP_SIGNALS

CREATE_NEW_PROCESS_GROUP = 0x00000200  # named in subprocess on Windows only
CTRL_BREAK_EVENT = 1  # named in signal on Windows only


class WindowsMachine:
    def __init__(
        self,
        popen: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen,
        run: Callable[..., Any] = subprocess.run,
    ) -> None:
        self.warning = ""
        self._popen = popen
        self._run = run
        self._agent: subprocess.Popen[bytes] | None = None
        self._asked = False
        self._came: list[int] = []
        for signum in STOP_SIGNALS:
            signal.signal(signum, self._note)

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        self._asked = False
        self._agent = self._popen(command, env=environment, creationflags=CREATE_NEW_PROCESS_GROUP)
        return self._agent.pid

    def pause(self, seconds: float) -> list[int]:
        if self.remaining() and self._agent:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._agent.wait(timeout=max(seconds, 0.0))
        elif not self._came:
            time.sleep(max(seconds, 0.0))
        came, self._came = self._came, []
        return came

    def exit_code(self) -> int | None:
        return self._agent.poll() if self._agent else None

    def remaining(self) -> bool:
        return self._agent is not None and self._agent.poll() is None

    def ask_to_end(self, signum: int) -> None:  # noqa: ARG002 - there is one polite request only
        if self._agent and self.remaining() and not self._asked:
            self._asked = True
            with contextlib.suppress(OSError):
                self._agent.send_signal(CTRL_BREAK_EVENT)

    def kill(self) -> None:
        if self._agent and self.remaining():
            self._run(
                ["taskkill", "/F", "/T", "/PID", str(self._agent.pid)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )

    def pass_on(self, signum: int) -> None:
        """Do nothing: Windows has no such signals."""

    def _note(self, signum: int, _frame: FrameType | None) -> None:
        self._came.append(signum)
