"""The table: which readings are shown, in which unit, and what they must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Row:
    """`at_least` and `at_most` are the goal; a row without one is there to explain the others.

    `wall` marks what other work on the machine moves at will, so that a busy one is no judge of it.
    """

    id: str
    what: str
    key: str
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None
    wall: bool = False

    @property
    def goal(self) -> str:
        if self.at_least is not None:
            return f"≥ {show(self.at_least)}{self.suffix}"
        if self.at_most is not None:
            return f"≤ {show(self.at_most)}{self.suffix}"
        return "-"

    def cells(
        self, readings: Sequence[Mapping[str, float]], *, busy: bool = False
    ) -> list[str] | None:
        """Id, what, goal, figure, spread, verdict; None where it was not measured."""
        values = [found[self.key] for found in readings if self.key in found]
        if not values:
            return None
        figure = f"{show(median(values))}{self.suffix}"
        spread = f"{show(min(values))} to {show(max(values))}" if len(values) > 1 else "-"
        return [
            self.id,
            self.what,
            self.goal,
            figure,
            spread,
            self.verdict(median(values), busy=busy),
        ]

    def verdict(self, value: float, *, busy: bool) -> str:
        if self.at_least is None and self.at_most is None:
            return "-"
        if busy and self.wall:
            return "not judged"
        low = self.at_least if self.at_least is not None else float("-inf")
        high = self.at_most if self.at_most is not None else float("inf")
        return "met" if low <= value <= high else "**missed**"

    @property
    def suffix(self) -> str:
        return f" {self.unit}" if self.unit else ""


def show(value: float) -> str:
    if value == round(value):
        return f"{value:.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


ROWS = (
    Row("S1", "pods/s, source None ÷ Job controller", "none.rate_ratio", at_least=1.0, wall=True),
    Row("S1", "pods/s, source File ÷ Job controller", "file.rate_ratio", at_least=1.0, wall=True),
    Row("", "Job controller, Jobs until their pods run", "jobs.per_second", "/s"),
    Row("", "Supervisors, source None", "none.per_second", "/s"),
    Row("", "Supervisors, source File (relay, Heartbeat)", "file.per_second", "/s"),
    Row(
        "S2",
        "verdict after the deadline, p99, seen outside",
        "late.p99",
        "ms",
        at_most=250,
        wall=True,
    ),
    Row("S2", "verdict after the deadline, the earliest", "late.min", "ms", at_least=0),
    Row("S2", "agents that beat, called unresponsive", "late.wrong", at_most=0),
    Row("", "the same, p50", "late.p50", "ms"),
    Row("", "the same, longest", "late.max", "ms"),
    Row("", "by the operator's own histogram, p50 (bucket's edge)", "late.own_p50", "ms"),
    Row("", "by the operator's own histogram, p99 (bucket's edge)", "late.own_p99", "ms"),
    Row("S3", "writes in a window, heartbeat column off", "off.writes", at_most=0),
    Row("S3", "writes in a window, all defaults", "default.writes"),
    Row("S4", "operator CPU per beat, column off", "off.ms_per_beat", "ms", at_most=0.1),
    Row("S4", "the same ÷ the bare reader's", "off.ratio", at_most=1.2),
    Row("", "the bare reader's CPU per event", "off.reader_ms", "ms"),
    Row("", "operator CPU per beat, all defaults", "default.ms_per_beat", "ms"),
    Row("", "beats seen", "off.beats_per_second", "/s"),
    Row("", "passes over agents (resync) meanwhile", "off.passes_per_second", "/s"),
    Row("", "share of them in the operator's CPU", "off.passes_share", "%"),
    Row("", "API-server CPU per beat, all its readers included", "off.api_ms", "ms"),
    Row("", "operator CPU with the fleet up and no beats (resync, lease)", "idle.percent", "%"),
    Row("S5", "resident memory without agents", "memory.base_mib", "MiB", at_most=80),
    Row("S5", "resident memory per beating agent", "memory.per_agent_kib", "KiB", at_most=12),
    Row("", "resident, whole fleet, operator started anew", "memory.after_restart_mib", "MiB"),
    Row("", "cold start among the fleet, each status written anew, ÷ three LISTs", "cold.ratio"),
    Row("", "cold start, process start to empty queue", "cold.seconds", "s"),
    Row("", "the three LISTs", "cold.lists", "s"),
    Row("S7", "next pod beyond the delay, p99", "restart.p99", "ms", at_most=250, wall=True),
    Row("", "the same, p50", "restart.p50", "ms"),
    Row("", "the same, longest", "restart.max", "ms"),
    Row("S10", "API-server CPU per agent ÷ per Job, source None", "none.api_ratio", at_most=1.3),
    Row("S10", "API-server CPU per agent ÷ per Job, source File", "file.api_ratio", at_most=1.3),
    Row("", "API-server CPU per Job", "jobs.api_ms", "ms"),
    Row("", "API-server CPU per agent, source None", "none.api_ms", "ms"),
    Row("", "API-server CPU per agent, source File", "file.api_ms", "ms"),
    Row("S11", "operator CPU per agent, source None", "none.controller_ms", "ms", at_most=5),
    Row("S11", "operator CPU per agent, source File", "file.controller_ms", "ms", at_most=5),
    Row("", "controller manager's CPU per Job", "jobs.controller_ms", "ms"),
    Row("", "operator's requests per agent, source None", "none.requests"),
    Row("", "operator's requests per agent, source File, first beat not included", "file.requests"),
    Row("", "operator's passes per agent, source None", "none.passes"),
    Row("", "operator's passes per agent, source File", "file.passes"),
    Row("", "**large fleet**: agents", "large.agents"),
    Row("", "large: pods/s, source File", "large.file.per_second", "/s"),
    Row("S4", "large: operator CPU per beat", "large.off.ms_per_beat", "ms", at_most=0.1),
    Row("S4", "large: the same ÷ the bare reader's", "large.off.ratio", at_most=1.2),
    Row("", "large: beats seen", "large.off.beats_per_second", "/s"),
    Row("", "large: operator CPU while all beat", "large.off.percent", "%"),
    Row("", "large: share of passes (resync, deadlines) in it", "large.off.passes_share", "%"),
    Row("", "large: operator CPU, all starting and no beats yet", "large.idle.percent", "%"),
    Row("S5", "large: memory per beating agent", "large.memory.per_agent_kib", "KiB", at_most=12),
    Row("", "large: resident after a cold start", "large.cold.mib", "MiB"),
    Row("S6", "large: cold start ÷ three LISTs", "large.cold.ratio", at_most=5, wall=True),
    Row("", "large: cold start, process start to empty queue", "large.cold.seconds", "s"),
    Row("", "large: the three LISTs", "large.cold.lists", "s"),
    Row("", "large: API-server CPU per agent brought up", "large.file.api_ms", "ms"),
    Row("S11", "large: operator CPU per agent", "large.file.controller_ms", "ms", at_most=5),
    Row("S8", "growth of seconds per pod", "growth.rate", at_most=1.2, wall=True),
    Row("S8", "growth of operator CPU per beat", "growth.beat", at_most=1.2),
    Row("S8", "growth of memory per agent", "growth.memory", at_most=1.2),
)
GROWTH = {
    "growth.rate": ("file.per_second", -1),
    "growth.beat": ("off.ms_per_beat", 1),
    "growth.memory": ("memory.per_agent_kib", 1),
}
"""What is compared, and whether more of it is worse (1) or better (-1)."""
HEAD = ["id", "figure", "goal", "measured", "spread", "verdict"]


def with_growth(
    runs: Sequence[Mapping[str, float]], large: Mapping[str, float], agents: int
) -> dict[str, float]:
    """The readings of a large fleet, and what they are of those of the usual one."""
    found = {f"large.{key}": value for key, value in large.items()} | {"large.agents": agents}
    for name, (key, sign) in GROWTH.items():
        usual = [run[key] for run in runs if key in run]
        if usual and key in large:
            found[name] = (large[key] / median(usual)) ** sign
    return found


def table(readings: Sequence[Mapping[str, float]], *, busy: bool) -> str:
    rows = [cells for row in ROWS if (cells := row.cells(readings, busy=busy))]
    lines = [HEAD, ["---"] * len(HEAD), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
