"""Judges an agent by its beats: is it silent for too long, why, and what may be done about it.

UNRESPONSIVE is a fact about beats. Only the remedy depends on the second signal, the relay's own
freshness: killing an agent that is busy or cut off is the mistake this table exists to avoid.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import floor

from supervisor_operator.api.v1alpha1.agent import HeartbeatPolicy
from supervisor_operator.api.v1alpha1.policies import HeartbeatSource, OnUnresponsive
from supervisor_operator.core.observed import BeatView, Observed, PodView
from supervisor_operator.core.words import Reason

RELAY_SLACK_SECONDS = 2.0


class Remedy(StrEnum):
    NONE = "none"
    RESTART = "restart"
    MARK = "mark"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class BeatVerdict:
    """`check_in` is when the answer may change by the passing of time alone."""

    unresponsive: bool
    reason: Reason
    remedy: Remedy = Remedy.NONE
    beaten: bool = True
    silence: float = 0.0
    missed: int = 0
    overdue: float = 0.0
    relay_fresh: bool = False
    check_in: float | None = None


def allowed_silence(policy: HeartbeatPolicy, beat: BeatView | None) -> float:
    busy = min(beat.busy_seconds if beat else 0.0, policy.max_busy_seconds)
    return (policy.missed_threshold + 1) * policy.interval_seconds + busy


def evaluate_beats(observed: Observed, pod: PodView, *, stored: bool) -> BeatVerdict:
    """Judge the newest pod; `stored` says that status holds a verdict against this very pod."""
    policy, beat = observed.spec.heartbeat, observed.beat or BeatView()
    beaten = beat.silence is not None
    silence = beat.silence if beat.silence is not None else observed.sightings.running or 0.0
    allowed = allowed_silence(policy, beat) if beaten else float(policy.startup_seconds)
    if silence < allowed:
        if stored and beaten and not beat.first_hand:
            return _still_silent(observed, allowed, silence)
        reason = Reason.HEARTBEAT_FRESH if beaten else Reason.STARTING
        check_in = allowed - silence if beaten or pod.running else None
        return BeatVerdict(
            unresponsive=False, reason=reason, beaten=beaten, silence=silence, check_in=check_in
        )
    relay_fresh = _is_relay_fresh(policy, beat)
    silent = Reason.HEARTBEATS_MISSED if beaten else Reason.STARTUP_TIMEOUT
    reason, remedy, check_in = _remedy(observed, pod, silent, silence, relay_fresh=relay_fresh)
    return BeatVerdict(
        unresponsive=True,
        reason=reason,
        remedy=remedy,
        beaten=beaten,
        silence=silence,
        missed=floor(silence / policy.interval_seconds),
        overdue=silence - allowed,
        relay_fresh=relay_fresh,
        check_in=check_in,
    )


def _still_silent(observed: Observed, allowed: float, silence: float) -> BeatVerdict:
    """A verdict from before our start stands until a beat arrives; its remedy waits in full."""
    return BeatVerdict(
        unresponsive=True,
        reason=Reason.HEARTBEATS_MISSED,
        remedy=Remedy.HOLD,
        silence=silence,
        missed=observed.status.missed_heartbeats or 0,
        check_in=allowed - silence,
    )


def _is_relay_fresh(policy: HeartbeatPolicy, beat: BeatView) -> bool:
    if policy.source is not HeartbeatSource.FILE or beat.relay_silence is None:
        return False
    return beat.relay_silence < 2 * policy.interval_seconds + RELAY_SLACK_SECONDS


def _remedy(
    observed: Observed, pod: PodView, silent: Reason, silence: float, *, relay_fresh: bool
) -> tuple[Reason, Remedy, float | None]:
    on_unresponsive = observed.spec.restart.on_unresponsive
    remedy = Remedy.RESTART if on_unresponsive is OnUnresponsive.RESTART else Remedy.MARK
    if observed.team and not observed.team.allowed and remedy is Remedy.RESTART:
        remedy = Remedy.HOLD
    if relay_fresh:
        return silent, remedy, None
    if pod.node_lost:
        return Reason.NODE_UNREACHABLE, Remedy.HOLD, None
    if not pod.relay_running:
        return Reason.RELAY_DOWN, Remedy.MARK, None
    if remedy is Remedy.RESTART and observed.storm:
        return silent, Remedy.HOLD, None
    left = observed.node_grace_seconds - silence
    if remedy is Remedy.RESTART and left > 0:
        return silent, Remedy.HOLD, left
    return silent, remedy, None
