"""Sentences for people: what happened, why, and what comes next."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from supervisor_operator.api.v1alpha1.meta import Phase
from supervisor_operator.api.v1alpha1.supervisor_status import LastTermination
from supervisor_operator.core.decision import Case
from supervisor_operator.core.heartbeat import BeatVerdict
from supervisor_operator.core.observed import PodView
from supervisor_operator.core.tree import MAX_DEPTH, ChildView, Lineage, LineProblem, is_well
from supervisor_operator.core.words import Reason

NAMED = 3
MINUTE = 60
HOUR = 3600


def spell(seconds: float) -> str:
    """Seconds as people say them: 5 s, 2 min 5 s, 2 h 3 min."""
    whole = round(seconds)
    if whole < 2 * MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        minutes, rest = divmod(whole, MINUTE)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, rest = divmod(whole, HOUR)
    return f"{hours} h {rest // MINUTE} min"


def tell_end(end: LastTermination) -> str:
    """How a run ended: exit code 3 (Error)."""
    parts = []
    if end.exit_code is not None:
        parts.append(f"exit code {end.exit_code}")
    if end.reason:
        parts.append(f"({end.reason})" if parts else end.reason)
    return " ".join(parts) or "unknown cause"


def tell_silence(case: Case, pod: PodView, verdict: BeatVerdict) -> str:
    beat = case.spec.heartbeat
    # In whole intervals, so that the text stays the same until another beat is missed.
    quiet = verdict.missed * beat.interval_seconds
    if verdict.beaten:
        what = (
            f"No heartbeat from pod {pod.name} for {quiet} s "
            f"({verdict.missed} missed, {beat.missed_threshold} allowed)"
        )
    else:
        what = (
            f"No first heartbeat from pod {pod.name} within {beat.startup_seconds} s of its start"
        )
    return f"{what}; {_why(case, verdict)}"


def _why(case: Case, verdict: BeatVerdict) -> str:
    if verdict.reason is Reason.NODE_UNREACHABLE:
        return "its node is unreachable, so nothing is done while that lasts"
    if verdict.reason is Reason.RELAY_DOWN:
        return (
            "the relay is not running, so the agent is left alone; the kubelet restarts the relay"
        )
    if case.observed.team and not case.observed.team.allowed:
        return "more members of its team are unhealthy than maxUnhealthy, so none is restarted"
    if case.observed.storm:
        return "most agents of this namespace are silent at once, so none of them is restarted"
    if verdict.relay_fresh:
        return "the relay is alive, so the agent itself hangs"
    return "nothing is heard from the pod, although its node looks well"


def tell_budget(case: Case, reason: str) -> str:
    """Why there is no further restart, and the way out."""
    most = case.spec.restart.max_restarts
    why = {
        Reason.BUDGET_EXHAUSTED: f"all {most} restarts are used up" if most else "maxRestarts is 0",
        Reason.EXIT_CODE_RULE: "a rule in restart.exitCodes says Fail",
        Reason.TEAM_EXHAUSTED: "maxTeamRestarts of its team is used up",
    }.get(Reason(reason), "restart.policy is Never")
    return (
        f"{why}; its pod and status.lastTermination are kept. "
        "Fix the cause, then set spec.restartRequest to a new value"
    )


def tell_mode(case: Case) -> str:
    """Whose mode it is that holds here."""
    mode, link = case.observed.mode, case.observed.team
    if case.spec.operating_mode is mode:
        return f"operatingMode is {mode}"
    if link and link.mode is mode:
        return f"team {link.team} is {mode}"
    return f"a supervisor above is {mode}"


def tell_children(children: Iterable[ChildView]) -> str:
    """Names what is wrong: who is unwell, and who is not up while others are."""
    found = tuple(children)
    active = sum(child.phase is Phase.ACTIVE for child in found)
    lacking = {Phase.SPAWNING} if active else set()
    unwell = [child for child in found if not is_well(child) or child.phase in lacking]
    text = f"{active} of {len(found)} children are ACTIVE"
    if not unwell:
        return text
    return f"{text}; {tell_names(f'{one.name} is {one.phase}/{one.health}' for one in unwell)}"


def tell_names(names: Iterable[str]) -> str:
    """The first few, so that the text stays short."""
    found = tuple(names)
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(found[:NAMED]) + more


def tell_line(lineage: Lineage) -> str:
    """What is wrong with parentRef, and what to do about it."""
    return {
        LineProblem.NONE: "",
        LineProblem.MISSING: f"There is no Supervisor {lineage.culprit}: create it, or change "
        "parentRef; until then this one runs on its own",
        LineProblem.CYCLE: f"Following parentRef leads back to {lineage.culprit}: change one of "
        "them; until then each obeys only itself",
        LineProblem.TOO_DEEP: f"The tree is deeper than {MAX_DEPTH}: {lineage.culprit} and what "
        "is above it is not followed",
    }[lineage.problem]


def tell_back_off(end: LastTermination | None, name: str, due: datetime, *, nth: str) -> str:
    how = tell_end(end) if end else "lost"
    return f"Pod {name} ended: {how}; {nth} at {due.isoformat(timespec='seconds')}"
