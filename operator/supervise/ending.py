"""Ending an agent: ask everything it started, wait, kill, and make sure that nothing is left."""

from supervise import clock
from supervise.machine import STOP_SIGNALS, Machine
from supervise.telling import Teller, signal_name
from supervise.watch import spell

LOOK = 0.05  # seconds between looks for orphans, which come to us without a signal


class Unkillable(Exception):  # noqa: N818 - says what it found
    """Something survived SIGKILL; a second agent beside it would do harm."""


class Ending:
    """How agents are ended; keeps the stop signal that came meanwhile."""

    def __init__(self, machine: Machine, teller: Teller, kill_after: float) -> None:
        self._machine = machine
        self._tell = teller
        self._kill_after = kill_after
        self.stop_signal: int | None = None

    def announce(self, event: str, why: str, signum: int, pid: int, **fields: float) -> None:
        what = f"{signal_name(signum)} to process group {pid}"
        message = f"{why}: {what}, SIGKILL in {spell(self._kill_after)}"
        self._tell.event(event, message, pid=pid, **fields)

    def end(self, signum: int, *, stopping: bool = False) -> None:
        kill_at = clock.monotonic() + self._kill_after
        while self._machine.remaining():
            if clock.monotonic() >= kill_at:
                self._kill()
                return
            self._machine.ask_to_end(signum)
            # Whoever asks a second time does not want to wait.
            if self._asked_to_stop() and stopping:
                kill_at = clock.monotonic()

    def _kill(self) -> None:
        self._tell.event("killing", "still there: SIGKILL")
        give_up_at = clock.monotonic() + max(self._kill_after, 5.0)
        while self._machine.remaining():
            if clock.monotonic() >= give_up_at:
                raise Unkillable
            self._machine.kill()
            self._asked_to_stop()

    def _asked_to_stop(self) -> bool:
        stops = [signum for signum in self._machine.pause(LOOK) if signum in STOP_SIGNALS]
        if stops:
            self.stop_signal = stops[-1]
        return bool(stops)
