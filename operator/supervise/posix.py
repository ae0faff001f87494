"""Processes on Linux and, without the catching of strays, on other POSIX systems.

The agent gets a session of its own. On Linux this process also becomes the reaper of all
orphans below it (PID 1 is that anyway), so that a grandchild that left the group, or was
forked twice, comes to us when its parent ends. "No child left" then means "nothing left".
"""

import contextlib
import os
import select
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType

from supervise.machine import STOP_SIGNALS

PR_SET_CHILD_SUBREAPER = 36
PASSED_SIGNALS = (
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)
PYTHON_IGNORES = (signal.SIGPIPE, signal.SIGXFSZ)


class PosixMachine:
    def __init__(self) -> None:
        self.warning = "" if _adopt_orphans() else "cannot adopt orphans: strays may survive"
        self._agent: int | None = None
        self._code: int | None = None
        self._asked: set[int] = set()
        # Whoever ran a program here before us by exec has left us its children.
        self._inherited = set(_children()) if sys.platform == "linux" else set()
        self._came: list[int] = []
        self._wake, writer = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self._listen()

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        self._asked.clear()
        self._agent = self._code = None
        # Python ignores PYTHON_IGNORES; the agent is to start as if a shell had started it.
        self._agent = os.posix_spawnp(
            command[0], list(command), environment, setsid=True, setsigdef=PYTHON_IGNORES
        )
        return self._agent

    def pause(self, seconds: float) -> list[int]:
        select.select([self._wake], [], [], max(seconds, 0.0))
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 4096)
        self._reap()
        came, self._came = self._came, []
        return came

    def exit_code(self) -> int | None:
        return self._code

    def remaining(self) -> bool:
        self._reap()
        return any(True for _ in self._groups())

    def ask_to_end(self, signum: int) -> None:
        for group in set(self._groups()) - self._asked:
            self._asked.add(group)
            _signal_group(group, signum)
            # A stopped process takes no signal but SIGKILL until it is continued.
            _signal_group(group, signal.SIGCONT)

    def kill(self) -> None:
        for group in set(self._groups()):
            _signal_group(group, signal.SIGKILL)

    def pass_on(self, signum: int) -> None:
        # Not reaped yet, so the pid is still the agent's own.
        if self._agent and self._code is None:
            with contextlib.suppress(PermissionError):  # it runs as another user by now
                os.kill(self._agent, signum)

    def _listen(self) -> None:
        signal.signal(signal.SIGCHLD, _wake_only)
        for signum in STOP_SIGNALS:
            signal.signal(signum, self._note)
        for signum in PASSED_SIGNALS:
            # Whoever started us with a signal ignored (nohup) wants the agent to ignore it too.
            if signal.getsignal(signum) is not signal.SIG_IGN:
                signal.signal(signum, self._note)

    def _note(self, signum: int, _frame: FrameType | None) -> None:
        self._came.append(signum)

    def _reap(self) -> None:
        """Collect everything that ended, orphans too."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                self._inherited.discard(pid)
                if pid == self._agent:
                    self._code = os.waitstatus_to_exitcode(status)

    def _groups(self) -> Iterator[int]:
        """Process groups of the agent; none can be a stranger's, as only we reap our children.

        Our own group is never among them: the agent lives in another session.
        """
        if sys.platform == "linux":
            ours = os.getpgrp()
            for pid in set(_children()) - self._inherited:
                with contextlib.suppress(ProcessLookupError):
                    if (group := os.getpgid(pid)) != ours:
                        yield group
        elif self._agent and _signal_group(self._agent, 0):
            yield self._agent


def _children() -> Iterator[int]:
    me = str(os.getpid()).encode()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
                # The name before the last parenthesis may hold anything, also spaces.
                # One that ended is still listed until it is reaped; so is one that only lost
                # its first thread, and lives.
                if stat.read().rpartition(b")")[2].split()[1] == me:
                    yield int(name)


def _signal_group(group: int, signum: int) -> bool:
    try:
        os.killpg(group, signum)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _wake_only(_signum: int, _frame: FrameType | None) -> None:
    """Exist, so that the signal is delivered and wakes `pause`."""


def _adopt_orphans() -> bool:
    if os.getpid() == 1:
        return True
    if sys.platform != "linux":
        return False
    import ctypes  # noqa: PLC0415 - costs time and memory, and PID 1 does without

    return bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
