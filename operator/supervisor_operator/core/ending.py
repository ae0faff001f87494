"""What the end of a run means: finished, failed for good, or restarted, counted or not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from supervisor_operator.api.v1alpha1.agent import RestartPolicySpec
from supervisor_operator.api.v1alpha1.policies import ExitAction, RestartPolicy
from supervisor_operator.api.v1alpha1.supervisor_status import LastTermination
from supervisor_operator.backoff import scatter
from supervisor_operator.core.ledger import Ledger
from supervisor_operator.core.observed import PodView
from supervisor_operator.core.pods import DISRUPTIONS
from supervisor_operator.core.words import EndedBy, Reason

DEADLINE = "DeadlineExceeded"
POD_DELETED = "PodDeleted"
DISRUPTED = "Disrupted"
LOST = {POD_DELETED, DISRUPTED, *DISRUPTIONS}
HANGS = {str(EndedBy.HEARTBEATS_MISSED), str(EndedBy.STARTUP_TIMEOUT)}
JITTER = 0.1
MAX_DOUBLINGS = 32


class Fate(StrEnum):
    FINISHED = "Finished"
    FAILED = "Failed"
    RESTART = "Restart"


@dataclass(frozen=True, slots=True)
class Judgement:
    fate: Fate
    reason: str = ""
    counts: bool = False
    delay: float = 0.0


def last_termination(pod: PodView, now: datetime) -> LastTermination:
    """The end of a pod as it is written to status; `reason` alone tells later how to judge it."""
    end = pod.end
    return LastTermination(
        exit_code=end.exit_code if end else None,
        signal=end.signal if end else None,
        reason=_reason(pod),
        message=(end.message if end else pod.message) or None,
        finished_at=(end.finished_at if end and end.finished_at else now),
        pod_name=pod.name,
    )


def _reason(pod: PodView) -> str:
    if pod.ended_by and pod.reason == DEADLINE:
        own = pod.end.reason if pod.end else ""
        return own if pod.ended_by == EndedBy.AGENT_EXITED else pod.ended_by
    if pod.disrupted:
        return pod.reason if pod.reason in DISRUPTIONS else DISRUPTED
    if pod.terminating:
        return POD_DELETED
    if pod.reason:
        return pod.reason
    return pod.end.reason if pod.end else pod.phase


def judge(end: LastTermination, policy: RestartPolicySpec, ledger: Ledger, seed: str) -> Judgement:
    """Judge by the record alone, so that it comes out the same when the pod is gone."""
    reason = end.reason or ""
    if reason in LOST:
        return Judgement(Fate.RESTART, reason)
    if reason not in HANGS and reason != DEADLINE:
        by_rule = _by_exit_code(end.exit_code, policy, ledger, seed)
        if by_rule:
            return by_rule
    if policy.policy is RestartPolicy.NEVER:
        word = reason if reason in HANGS else Reason.AGENT_EXITED
        return Judgement(Fate.FAILED, word)
    if ledger.counted >= policy.max_restarts:
        return Judgement(Fate.FAILED, Reason.BUDGET_EXHAUSTED)
    return _restart(reason, policy, ledger, seed)


def _restart(reason: str, policy: RestartPolicySpec, ledger: Ledger, seed: str) -> Judgement:
    delay = restart_delay(policy, ledger.counted, seed, ledger.run)
    return Judgement(Fate.RESTART, reason, counts=True, delay=delay)


def _by_exit_code(
    code: int | None, policy: RestartPolicySpec, ledger: Ledger, seed: str
) -> Judgement | None:
    rules = policy.exit_codes or ()
    action = next((rule.action for rule in rules if code in rule.codes), None)
    match action:
        case ExitAction.FAIL:
            return Judgement(Fate.FAILED, Reason.EXIT_CODE_RULE)
        case ExitAction.COMPLETE:
            return Judgement(Fate.FINISHED, Reason.SUCCEEDED)
        case ExitAction.IGNORE:
            grown = max(0, ledger.run - ledger.forgiven - 1)
            delay = restart_delay(policy, grown, seed, ledger.run)
            return Judgement(Fate.RESTART, "Ignored", delay=delay)
        case ExitAction.RESTART:
            return None
        case None:
            finishes = code == 0 and policy.policy is not RestartPolicy.ALWAYS
            return Judgement(Fate.FINISHED, Reason.SUCCEEDED) if finishes else None


def restart_delay(policy: RestartPolicySpec, doublings: int, seed: str, run: int) -> float:
    """Doubles each time up to the longest delay; up to a tenth more, so that none march in step."""
    grown = policy.delay_seconds * 2.0 ** min(doublings, MAX_DOUBLINGS)
    jittered = grown * (1 + JITTER * scatter(seed, run))
    return float(min(jittered, policy.max_delay_seconds))
