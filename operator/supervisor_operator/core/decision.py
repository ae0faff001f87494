"""The case of one pass, and the decision that a check comes to about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from supervisor_operator.api.v1alpha1.meta import Condition, ConditionStatus
from supervisor_operator.api.v1alpha1.policies import HeartbeatSource
from supervisor_operator.api.v1alpha1.supervisor import SupervisorSpec
from supervisor_operator.api.v1alpha1.supervisor_status import (
    LastTermination,
    Outcome,
    OutcomeType,
    SupervisorStatus,
)
from supervisor_operator.core.actions import Action
from supervisor_operator.core.ending import last_termination
from supervisor_operator.core.ledger import Ledger, read_ledger
from supervisor_operator.core.observed import Now, Observed, PodView
from supervisor_operator.core.states import State
from supervisor_operator.core.template import pod_name
from supervisor_operator.core.words import ConditionType

STUCK_AFTER_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Case:
    """What was observed, with the few facts that all checks start from."""

    observed: Observed
    now: Now
    ledger: Ledger
    newest: PodView | None
    alive: tuple[PodView, ...]

    @classmethod
    def of(cls, observed: Observed, now: Now) -> Case:
        ledger = read_ledger(observed.status, observed.pods)
        return cls(
            observed=observed,
            now=now,
            ledger=ledger,
            newest=next((pod for pod in observed.pods if pod.run == ledger.run), None),
            alive=tuple(pod for pod in observed.pods if not pod.finished),
        )

    @property
    def spec(self) -> SupervisorSpec:
        return self.observed.spec

    @property
    def status(self) -> SupervisorStatus:
        return self.observed.status

    @property
    def wanted_hash(self) -> str:
        return self.observed.template_hash

    @property
    def beats(self) -> bool:
        return self.spec.heartbeat.source is not HeartbeatSource.NONE

    @property
    def recorded(self) -> LastTermination | None:
        """The end of the newest run, if status holds it already."""
        end = self.status.last_termination
        name = pod_name(self.observed.name, self.ledger.run)
        return end if end and end.pod_name == name else None

    @property
    def is_settled(self) -> bool:
        """Status calls the newest run nobody's any more: the next one starts afresh."""
        return self.status.run == self.ledger.run and self.status.pod_uid is None

    @property
    def order(self) -> int:
        """The team's order that the newest run was started under, its pod gone or not."""
        if self.newest:
            return self.newest.order
        member = self.status.member_of
        return (member.order or 0) if member and self.status.run == self.ledger.run else 0

    @property
    def ready_reason(self) -> str:
        ready = self.condition(ConditionType.READY)
        return ready.reason if ready else ""

    @property
    def outcome(self) -> Outcome | None:
        """How the agent ended for good; one of an earlier run is history."""
        found = self.status.outcome
        if found and found.run is not None and found.run < self.ledger.run:
            return None
        return found

    @property
    def next_restart(self) -> datetime | None:
        """When the run after the newest one may start; the time of an earlier one is history."""
        is_of_newest = self.status.run == self.ledger.run
        return self.status.next_restart_time if is_of_newest else None

    @property
    def is_released(self) -> bool:
        """An outcome ends with a new template, a new restartRequest, or an order from above."""
        outcome = self.outcome
        if outcome is None:
            return False
        request = self.spec.restart_request
        asked = bool(request) and request != outcome.restart_request
        ordered = outcome.run is not None and self.observed.tree.ordered_run == outcome.run
        return asked or ordered or outcome.template_hash != self.wanted_hash

    @property
    def stored_verdict(self) -> Condition | None:
        """Unresponsive=True as status holds it against the newest pod itself."""
        found = self.condition(ConditionType.UNRESPONSIVE)
        if found is None or found.status is not ConditionStatus.TRUE or self.newest is None:
            return None
        return found if self.status.pod_uid == self.newest.uid else None

    def newest_end(self) -> LastTermination | None:
        """The last end of a run: of the newest pod where it is finished, else as recorded."""
        if self.newest and self.newest.finished and not self.recorded:
            return last_termination(self.newest, self.now.wall)
        return self.status.last_termination

    def condition(self, kind: ConditionType) -> Condition | None:
        return next((one for one in self.status.conditions or () if one.type == kind), None)

    def seconds_since(self, moment: datetime | None) -> float:
        """Age by our own wall clock; never negative, so a clock set back only delays."""
        return max(0.0, (self.now.wall - moment).total_seconds()) if moment else 0.0

    def failed(self, reason: str) -> Outcome:
        return self.ended_for_good(OutcomeType.FAILED, reason)

    def ended_for_good(self, kind: OutcomeType, reason: str) -> Outcome:
        return Outcome(
            type=kind,
            reason=reason,
            run=self.ledger.run,
            template_hash=self.wanted_hash,
            restart_request=self.spec.restart_request,
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """The state a case is in, what to do, and what to write down.

    `outcome`, `next_restart` and `ended` are written as they stand here: a check that keeps them
    takes them from the case. `check_in` asks for another look after so many seconds.
    """

    state: State
    message: str
    ledger: Ledger
    reason: str = ""
    outcome: Outcome | None = None
    next_restart: datetime | None = None
    ended: LastTermination | None = None
    actions: tuple[Action, ...] = ()
    check_in: float | None = None
    missed: int | None = None
    overdue: float | None = None
    """Seconds past the deadline, where silence was judged."""
    verdict: str = ""
    """Reason of Unresponsive=True; empty: not unresponsive."""
    settled: bool = False
    """The newest run is over and done with: whoever starts again starts afresh."""
    confirm: bool = False
    """Read the Heartbeat from the server before this may be believed."""

    @property
    def ready_reason(self) -> str:
        return self.reason or str(self.state.value.reason or "")


def was_paused(status: SupervisorStatus) -> bool:
    return any(
        one.type == ConditionType.PAUSED and one.status is ConditionStatus.TRUE
        for one in status.conditions or ()
    )


def kept(case: Case, state: State, message: str) -> Decision:
    """Nothing moves: all records stay as they are."""
    return Decision(
        state,
        message,
        case.ledger,
        outcome=case.outcome,
        next_restart=case.next_restart,
        ended=case.newest_end(),
    )


def stuck_or(pod: PodView, decision: Decision, since: float | None) -> Decision:
    """The decision, or PodStuckTerminating where the pod outlives its grace by far."""
    limit = pod.grace_seconds + STUCK_AFTER_SECONDS
    waited = since or 0.0
    if waited < limit:
        return replace(decision, check_in=limit - waited)
    message = (
        f"Pod {pod.name} on node {pod.node or '(none)'} does not end: its kubelet may be away. "
        "The next run waits, so that there are never two copies. If the node is lost, taint it "
        "with node.kubernetes.io/out-of-service, or run: "
        f"kubectl delete pod {pod.name} --force --grace-period=0"
    )
    return replace(decision, state=State.STUCK, reason="", message=message)
