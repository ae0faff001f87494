"""`supervise run`: start the agent, watch it, end it when it is silent, start it again.

One pass of the loop: wait, heed signals, see whether the agent ended, look at its file, judge.
"""

import contextlib
import errno
import os
import signal
from typing import NamedTuple

from supervise import beatfile, clock
from supervise.ending import Ending, Unkillable
from supervise.environment import agent_environment
from supervise.machine import STOP_SIGNALS, Machine
from supervise.telling import Teller, how_ended, signal_name
from supervise.watch import Limits, Look, Watch, spell

FAILED, CANNOT_RUN, NOT_FOUND = 1, 126, 127
PASSING_ERRORS = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)


class Options(NamedTuple):
    command: tuple[str, ...]
    heartbeat_file: str
    limits: Limits
    max_restarts: int
    delay: float
    kill_after: float
    pythonpath: str | None


class Stop(Exception):  # noqa: N818 - a request, not an error
    """Somebody asked us to end; carries the signal that asked."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal_name(signum))
        self.signum = signum


class CannotStart(Exception):  # noqa: N818 - says what it found
    """The system refuses to start this command, and would refuse again."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class Runner:
    def __init__(self, options: Options, machine: Machine, teller: Teller) -> None:
        self._options = options
        self._machine = machine
        self._tell = teller
        self._ending = Ending(machine, teller, options.kill_after)
        self._pid = 0
        self._started = clock.monotonic()

    def run(self) -> int:
        """Supervise until the end and return the exit code."""
        if self._machine.warning:
            self._tell.problem(self._machine.warning)
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(self._options.heartbeat_file) or os.curdir, exist_ok=True)
        try:
            return self._run_and_restart()
        except Stop as stop:
            return self._stop(stop.signum)
        except CannotStart as refusal:
            return self._cannot_run(refusal.error)
        except Unkillable:
            self._tell.failure("unkillable", "gave up: a process survived SIGKILL", pid=self._pid)
            return FAILED

    def _run_and_restart(self) -> int:
        most = self._options.max_restarts
        restarts = 0
        while failure := self._attempt(restarts + 1):
            if restarts == most:
                why = f"after restart {most} of {most}" if most else "at once: no restarts allowed"
                self._tell.failure("gave-up", f"{failure}; gave up {why}", of=most)
                return FAILED
            restarts += 1
            delay = self._options.delay
            message = f"{failure}; restart {restarts} of {most} in {spell(delay)}"
            self._tell.event("restarting", message, restart=restarts, of=most, delay=delay)
            self._rest(delay)
        return 0

    def _attempt(self, number: int) -> str:
        """Run the agent once; return how it failed, or nothing when it finished well."""
        watch = Watch(self._options.limits, self._look())
        if failure := self._start(number):
            return failure
        silent = self._watch(watch)
        self._clear_up(silent=silent)
        code = self._machine.exit_code() or 0
        if code or silent:
            return how_ended(code)
        after = spell(clock.monotonic() - self._started)
        self._tell.event("finished", f"finished with exit code 0 after {after}", pid=self._pid)
        return ""

    def _start(self, number: int) -> str:
        """Start the agent; return why not, if another attempt may go better."""
        options = self._options
        environment = agent_environment(
            os.environ, options.heartbeat_file, options.limits.timeout, options.pythonpath
        )
        self._started = clock.monotonic()
        try:
            self._pid = self._machine.start(options.command, environment)
        except OSError as error:
            if error.errno in PASSING_ERRORS:
                return f"cannot start ({error.strerror})"
            raise CannotStart(error) from error
        attempts = options.max_restarts + 1
        message = f"started pid {self._pid} (attempt {number} of {attempts})"
        self._tell.event("started", message, pid=self._pid, attempt=number, of=attempts)
        return ""

    def _cannot_run(self, error: OSError) -> int:
        command = self._options.command[0]
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            self._tell.failure("not-found", f"command not found: {command}", command=command)
            return NOT_FOUND
        message = f"cannot run {command}: {error.strerror}"
        self._tell.failure("cannot-run", message, command=command)
        return CANNOT_RUN

    def _watch(self, watch: Watch) -> bool:
        """Watch until the agent ended (False) or is silent for too long (True)."""
        while True:
            self._heed(self._machine.pause(self._options.limits.check_interval))
            if self._machine.exit_code() is not None:
                return False
            if problem := watch.see(self._look()):
                self._tell.problem(f"heartbeat file {self._options.heartbeat_file} {problem}")
            if silence := watch.silence():
                seconds, limit, _ = silence
                self._ending.announce(
                    "stale",
                    silence.spelled(),
                    signal.SIGTERM,
                    self._pid,
                    silence=seconds,
                    limit=limit,
                )
                return True

    def _look(self) -> Look:
        sighting = beatfile.read(self._options.heartbeat_file)
        return Look(clock.monotonic(), clock.wall(), sighting)

    def _heed(self, signals: list[int]) -> None:
        """Pass on signals meant for the agent, raise on those meant for us."""
        for signum in signals:
            if signum in STOP_SIGNALS:
                raise Stop(signum)
            self._machine.pass_on(signum)

    def _rest(self, seconds: float) -> None:
        end = clock.monotonic() + seconds
        while (left := end - clock.monotonic()) > 0:
            self._heed(self._machine.pause(left))

    def _clear_up(self, *, silent: bool) -> None:
        if not silent and self._machine.remaining():
            self._ending.announce("left-behind", "left processes behind", signal.SIGTERM, self._pid)
        self._ending.end(signal.SIGTERM)
        if self._ending.stop_signal is not None:
            raise Stop(self._ending.stop_signal)

    def _stop(self, signum: int) -> int:
        name = signal_name(signum)
        if self._machine.remaining():
            self._ending.announce("stopping", f"got {name}", signum, self._pid)
            self._ending.end(signum, stopping=True)
        after = spell(clock.monotonic() - self._started)
        self._tell.event("stopped", f"stopped by {name} after {after}", pid=self._pid)
        return 0
