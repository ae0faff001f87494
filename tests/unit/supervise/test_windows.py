"""The Windows path by its calls; it was never run on Windows."""

import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from supervise.machine import STOP_SIGNALS
from supervise.windows import WindowsMachine


class Agent:
    """Stands for a process of Windows: alive until `code` is set."""

    pid = 4711

    def __init__(self) -> None:
        self.code: int | None = None
        self.signals: list[int] = []

    def poll(self) -> int | None:
        return self.code

    def wait(self, timeout: float) -> int:
        if self.code is None:
            raise subprocess.TimeoutExpired("agent", timeout)
        return self.code

    def send_signal(self, signum: int) -> None:
        self.signals.append(signum)


class Windows:
    def __init__(self) -> None:
        self.agent = Agent()
        self.started: list[tuple[Any, dict[str, Any]]] = []
        self.ran: list[list[str]] = []
        self.machine = WindowsMachine(popen=self.popen, run=self.run)

    def popen(self, command: Any, **options: Any) -> Any:
        self.started.append((command, options))
        return self.agent

    def run(self, command: list[str], **_options: Any) -> None:
        self.ran.append(command)


@pytest.fixture
def windows() -> Iterator[Windows]:
    kept = {signum: signal.getsignal(signum) for signum in STOP_SIGNALS}
    yield Windows()
    for signum, handler in kept.items():
        signal.signal(signum, handler)


def test_the_agent_gets_a_process_group_of_its_own(windows: Windows) -> None:
    assert windows.machine.start(["bot"], {"A": "b"}) == 4711
    assert windows.started == [(["bot"], {"env": {"A": "b"}, "creationflags": 0x200})]


def test_it_is_asked_once_by_ctrl_break(windows: Windows) -> None:
    windows.machine.start(["bot"], {})
    windows.machine.ask_to_end(signal.SIGTERM)
    windows.machine.ask_to_end(signal.SIGTERM)
    assert windows.agent.signals == [1]


def test_it_is_killed_with_its_descendants(windows: Windows) -> None:
    windows.machine.start(["bot"], {})
    windows.machine.kill()
    assert windows.ran == [["taskkill", "/F", "/T", "/PID", "4711"]]


def test_an_agent_that_ended_is_not_killed(windows: Windows) -> None:
    windows.machine.start(["bot"], {})
    windows.agent.code = 3
    windows.machine.ask_to_end(signal.SIGTERM)
    windows.machine.kill()
    assert windows.machine.exit_code() == 3
    assert not windows.machine.remaining()
    assert windows.agent.signals == []
    assert windows.ran == []


def test_signals_for_us_are_noted(windows: Windows) -> None:
    assert windows.machine.pause(0) == []
    signal.raise_signal(signal.SIGINT)
    assert windows.machine.pause(0) == [signal.SIGINT]
    windows.machine.start(["bot"], {})
    signal.raise_signal(signal.SIGTERM)
    assert windows.machine.pause(0) == [signal.SIGTERM]
    assert windows.machine.pause(0) == []
