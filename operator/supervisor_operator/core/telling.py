"""Sentences for people: what happened, why, and what comes next."""

from __future__ import annotations

from datetime import datetime

from supervisor_operator.api.v1alpha1.supervisor_status import LastTermination
from supervisor_operator.core.decision import Case
from supervisor_operator.core.heartbeat import BeatVerdict
from supervisor_operator.core.observed import PodView
from supervisor_operator.core.words import Reason

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
    }.get(Reason(reason), "restart.policy is Never")
    return (
        f"{why}; its pod and status.lastTermination are kept. "
        "Fix the cause, then set spec.restartRequest to a new value"
    )


def tell_back_off(end: LastTermination | None, name: str, due: datetime, *, nth: str) -> str:
    how = tell_end(end) if end else "lost"
    return f"Pod {name} ended: {how}; {nth} at {due.isoformat(timespec='seconds')}"
