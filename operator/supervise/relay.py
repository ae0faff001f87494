"""`supervise relay`: beside the agent in its pod, carries its beats from the file to its Heartbeat.

One pass of the loop: look at the file, report if it is time, wait. Nothing that the file holds or
the API server says ends it; SIGTERM does, and then a beat not reported yet still goes out.
"""

import signal
import time
from types import FrameType
from typing import Any

from supervise import beatfile, clock, report
from supervise.beatfile import Sighting
from supervise.machine import STOP_SIGNALS
from supervise.pod import Pod
from supervise.schedule import Schedule
from supervise.telling import Teller, signal_name
from supervise.uplink import NotYet, Trouble, Unfit, Uplink, Wrong
from supervise.watch import Beats, Look, spell

LOOK = 1.0
LAST_WORDS = 0.6  # seconds for a last report, so that we end within one


class Stop(Exception):  # noqa: N818 - a request, not an error
    """Somebody asked us to end."""


class Relay:
    def __init__(self, pod: Pod, uplink: Uplink, teller: Teller) -> None:
        self._pod = pod
        self._uplink = uplink
        self._tell = teller
        self._stopped_by: int | None = None
        self._pause = min(LOOK, pod.interval / 4)
        self._schedule = Schedule(pod.interval, self._pause, clock.monotonic())
        self._beats = Beats(Look(clock.monotonic(), clock.wall(), Sighting()))
        self._beat: report.Newest | None = None
        self._reported = 0  # number of the last beat that arrived
        self._before: int | None = None  # sequence that a relay before us reached; None: unknown
        self._metrics: Any = None  # as the API server has them
        self._problems: dict[str, None] = {}  # of the file since the last report, in order
        self._absent = False  # the file, at the last look
        self._failing_since: float | None = None
        self._troubles: set[str] = set()  # told since then
        self._wrong = ""  # the last of them that the next report is to carry

    def run(self) -> None:
        """Relay until a signal comes."""
        try:
            for signum in STOP_SIGNALS:
                signal.signal(signum, self._stop)
            self._relay()
        except Stop:
            pass
        self._last_words()

    def _stop(self, signum: int, _frame: FrameType | None) -> None:
        for each in STOP_SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        # Kept as well, because an exception raised within a destructor is lost.
        self._stopped_by = signum
        raise Stop

    def _relay(self) -> None:
        self._look()
        # Where there is a beat already, a relay before us may have counted it and others.
        self._before = None if self._beat else 0
        what = f"{self._pod.file} every {spell(self._pod.interval)}"
        self._tell.event("relaying", f"relaying {what} to {self._pod.path}")
        while self._stopped_by is None:
            if self._schedule.due(clock.monotonic(), news=self._has_news()):
                self._send()
            time.sleep(self._pause)
            self._look()

    def _last_words(self) -> None:
        signal.signal(signal.SIGALRM, _too_late)
        signal.setitimer(signal.ITIMER_REAL, LAST_WORDS)
        try:
            self._look()
            if self._has_news():
                self._send()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except TimeoutError:
            pass
        self._tell.event("stopped", f"stopped by {signal_name(self._stopped_by or 0)}")

    def _look(self) -> None:
        look = Look(clock.monotonic(), clock.wall(), beatfile.read(self._pod.file))
        if arrival := self._beats.see(look):
            number = self._beat.number + 1 if self._beat else 1
            self._beat = report.newest(number, arrival, look)
        self._absent = look.sighting == Sighting()
        for problem in (look.sighting.problem, *(self._beat.problems if self._beat else ())):
            if problem:
                self._problems[f"heartbeat file {self._pod.file} {problem}"] = None

    def _has_news(self) -> bool:
        return self._beat is not None and self._beat.number > self._reported

    def _send(self) -> None:
        absent = [f"no file {self._pod.file}"] if self._absent else []
        problems = [*absent, *self._problems, *self._pod.problems]
        for problem in problems:
            self._tell.problem(problem)
        try:
            self._report([self._wrong, *problems] if self._wrong else problems)
        except Trouble as trouble:
            self._failed(trouble)
        else:
            self._arrived()

    def _report(self, problems: list[str]) -> None:
        status = report.without_beat(clock.wall(), problems)
        if self._beat is None or self._before is None:
            stored = self._uplink.patch(status)
            self._before, self._metrics = _sequence(stored), stored.get("metrics")
        if self._beat is not None:
            age = clock.monotonic() - self._beat.monotonic
            sequence = self._before + self._beat.number
            stored = self._uplink.patch(
                report.with_beat(self._beat, sequence, age, self._metrics, status)
            )
            self._reported, self._metrics = self._beat.number, stored.get("metrics")

    def _failed(self, trouble: Trouble) -> None:
        now, text = clock.monotonic(), str(trouble)
        self._schedule.failed(now)
        if isinstance(trouble, NotYet):
            return
        if self._failing_since is None:
            self._failing_since = now
        if text not in self._troubles:
            self._troubles.add(text)
            self._tell.event("trouble", text)
        if isinstance(trouble, Wrong):
            self._wrong = text
        if isinstance(trouble, Unfit) and self._beat:
            # A figure that no server takes, such as an endless number, must not stop the beats.
            self._beat = self._beat._replace(metrics=None)

    def _arrived(self) -> None:
        now = clock.monotonic()
        self._schedule.succeeded(now)
        self._problems.clear()
        self._wrong = ""
        if self._failing_since is not None:
            after = spell(now - self._failing_since)
            self._tell.event("recovered", f"reports arrive again after {after}")
            self._failing_since = None
            self._troubles.clear()


def _sequence(stored: dict[str, Any]) -> int:
    sequence = stored.get("sequence")
    return sequence if isinstance(sequence, int) else 0


def _too_late(_signum: int, _frame: FrameType | None) -> None:
    raise TimeoutError("no time left for a last report")
