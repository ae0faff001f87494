"""How long has the agent been silent? Decided here, from looks at its file; nothing here does IO.

A beat is a *change* of the file seen on the monotonic clock. The beat's own timestamp only says how
old it already was then, and never more than the agent's age. Time in which nobody looked
(this process was stopped, the file system failed) is no silence.
"""

from typing import NamedTuple

from supervise.beatfile import Beat, Sighting

CLOCK_TOLERANCE = 0.5  # seconds the wall clock may move between two looks and still be trusted
FUTURE_TOLERANCE = 5.0


class Limits(NamedTuple):
    timeout: float
    startup: float
    check_interval: float
    max_busy: float = 0.0


class Look(NamedTuple):
    monotonic: float
    wall: float
    sighting: Sighting


class Silence(NamedTuple):
    seconds: float
    limit: float
    began: bool  # whether there ever was a beat

    def spelled(self) -> str:
        if self.began:
            return f"heartbeat is {spell(self.seconds)} old (limit {spell(self.limit)})"
        return f"no heartbeat within {spell(self.limit)} of the start"


class Arrival(NamedTuple):
    """A beat that the look before did not show."""

    beat: Beat
    age: float  # when it was first seen
    problem: str


class Beats:
    """Tells new beats from known ones, and how old a new one is: one rule for run and relay."""

    def __init__(self, first: Look) -> None:
        self._last = first
        self._mark = first.sighting.beat.mark if first.sighting.beat else None

    def see(self, look: Look) -> Arrival | None:
        beat, last, self._last = look.sighting.beat, self._last, look
        if not beat or beat.mark == self._mark:
            return None
        self._mark = beat.mark
        ahead = beat.unix_ts - look.wall > FUTURE_TOLERANCE
        drift = (look.wall - look.monotonic) - (last.wall - last.monotonic)
        # A clock that was just set tells no age.
        age = 0.0 if abs(drift) > CLOCK_TOLERANCE else look.wall - beat.unix_ts - beat.grain
        return Arrival(beat, max(age, 0.0), "has a time in the future" if ahead else "")


class Watch:
    """The silence of one run of the agent; `first` is the look taken just before its start."""

    def __init__(self, limits: Limits, first: Look) -> None:
        self._limits = limits
        self._start = self._quiet_since = first.monotonic
        self._last = first
        self._beats = Beats(first)
        self._allowed = limits.startup
        self._began = False

    def see(self, look: Look) -> str:
        """Take one look into account; returns what is wrong with the file, if anything."""
        self._quiet_since += self._unwatched(look)
        self._last = look
        problem = look.sighting.problem
        if arrival := self._beats.see(look):
            uncounted = self._count(arrival)
            problem = problem or arrival.problem or uncounted
        return problem

    def silence(self) -> Silence | None:
        """Return the silence if it is longer than allowed."""
        seconds = self._last.monotonic - self._quiet_since
        if self._last.sighting.blind or seconds <= self._allowed:
            return None
        return Silence(seconds, self._allowed, self._began)

    def _count(self, arrival: Arrival) -> str:
        now = self._last.monotonic
        if arrival.age > now - self._start:
            return "has a time before the start of the agent"
        self._quiet_since = max(self._quiet_since, now - arrival.age)
        self._allowed = self._limits.timeout + min(arrival.beat.busy_seconds, self._limits.max_busy)
        self._began = True
        return ""

    def _unwatched(self, look: Look) -> float:
        gap = look.monotonic - self._last.monotonic
        if look.sighting.blind:
            return gap
        late = gap - self._limits.check_interval
        return late if late > self._limits.check_interval else 0.0


def spell(seconds: float) -> str:
    """Return the duration as a person says it: 0.7 s, 31 s, 5 min 10 s, 2 h 3 min."""
    if seconds < 10:  # noqa: PLR2004 - below ten seconds a tenth is worth telling
        return f"{round(seconds, 1):g} s"
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if whole < 120:  # noqa: PLR2004 - up to two minutes people count seconds
        return f"{whole} s"
    parts = [(hours, "h"), (minutes, "min"), (0 if hours else rest, "s")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number)
