"""From a Supervisor to its health answer: the operator's own words, a level, and what to do now.

Nothing is judged twice: phase, conditions and counts are the operator's. Only two things are found
out here, because the operator cannot say them of itself: that it has not looked yet, and that it
seems to be away.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from supervisor_operator.api.v1alpha1.meta import Health
from supervisor_operator.api.v1alpha1.policies import HeartbeatSource
from supervisor_operator.core.health.advice import next_step
from supervisor_operator.core.health.level import level_of
from supervisor_operator.core.health.report import (
    HealthReport,
    HeartbeatReport,
    Level,
    RestartReport,
)
from supervisor_operator.core.health.steps import Step, find_operator
from supervisor_operator.core.health.subject import Beat, Subject
from supervisor_operator.core.telling import spell

NOT_SEEN = "NotSeenYet"
OUTDATED = "StatusOutdated"
UNJUDGED = "SilenceUnjudged"
PATIENCE = timedelta(seconds=60)
"""How late the operator's word may be before it is doubted; clocks may differ by this much."""


def assess(subject: Subject, now: datetime, beat: Beat | None = None) -> HealthReport:
    level, reason, cause, step = judge(subject, now, beat)
    status = subject.status
    return HealthReport(
        id=subject.uid,
        namespace=subject.namespace,
        name=subject.name,
        level=level,
        phase=status.phase,
        health=status.health,
        mode=subject.spec.operating_mode,
        reason=reason,
        cause=cause,
        next_step=step.text,
        commands=list(step.commands),
        pod=status.pod_name,
        node=status.node_name,
        heartbeat=_heartbeat(subject, now, beat),
        restarts=_restarts(subject),
        conditions=list(status.conditions or ()),
    )


def judge(
    subject: Subject, now: datetime, beat: Beat | None = None
) -> tuple[Level, str, str, Step]:
    """Level, reason, cause, and the next step; of the time only its commands may tell."""
    ready, level = subject.ready, level_of(subject)
    if ready is None:
        cause = "The operator has not looked at it yet"
        return level, NOT_SEEN, cause, find_operator(subject)
    if subject.status.observed_generation < subject.generation:
        cause = "The operator has not looked at the newest spec yet; this is of an older one"
        return level, OUTDATED, cause, find_operator(subject)
    if silence := _unjudged(subject, now, beat):
        cause = f"No heartbeat for {spell(silence)}, and the operator has not said a word about it"
        return Level.UNKNOWN, UNJUDGED, cause, find_operator(subject)
    return level, ready.reason, ready.message, next_step(subject, now)


def _unjudged(subject: Subject, now: datetime, beat: Beat | None) -> float | None:
    """Seconds of silence that the operator should have noticed: then it is most likely away."""
    if beat is None or beat.time is None or subject.status.health is not Health.HEALTHY:
        return None
    if subject.spec.heartbeat.source is HeartbeatSource.NONE:
        return None
    busy = timedelta(seconds=subject.spec.heartbeat.max_busy_seconds)
    silence = now - beat.time
    is_late = silence > subject.allowed_silence + busy + PATIENCE
    return silence.total_seconds() if is_late else None


def _heartbeat(subject: Subject, now: datetime, beat: Beat | None) -> HeartbeatReport:
    policy, status = subject.spec.heartbeat, subject.status
    if policy.source is HeartbeatSource.NONE or subject.spec.agent is None:
        return HeartbeatReport()
    live = beat.time if beat else None
    last = live or status.last_heartbeat_time
    age = max(0, int((now - last).total_seconds())) if last else None
    missed = status.missed_heartbeats or 0
    if live and age is not None:
        missed = max(missed, age // policy.interval_seconds)
    return HeartbeatReport(
        last_time=last,
        age_seconds=age,
        missed=missed,
        allowed=policy.missed_threshold,
        interval_seconds=policy.interval_seconds,
        problem=(beat.problem or None) if beat else None,
    )


def _restarts(subject: Subject) -> RestartReport:
    used = subject.status.restarts_counted or 0
    return RestartReport(
        used=used,
        left=max(0, subject.spec.restart.max_restarts - used),
        total=subject.status.restarts or 0,
        next_time=subject.status.next_restart_time,
    )
