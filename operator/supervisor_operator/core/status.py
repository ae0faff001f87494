"""The status a decision leads to: the state's row, and the records beside it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from supervisor_operator.api.v1alpha1.meta import ConditionStatus, OperatingMode, Phase
from supervisor_operator.api.v1alpha1.policies import HeartbeatSource
from supervisor_operator.api.v1alpha1.supervisor_status import MemberOf, SupervisorStatus
from supervisor_operator.core.children import ChildPlan
from supervisor_operator.core.conditions import Said, update_conditions
from supervisor_operator.core.decision import Case, Decision
from supervisor_operator.core.observed import BeatColumn, PodView
from supervisor_operator.core.states import State
from supervisor_operator.core.telling import tell_children, tell_line, tell_mode
from supervisor_operator.core.tree import count, is_well
from supervisor_operator.core.words import ConditionType, Reason

TEAMS_SHOWN = 100
TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
PROGRESS = {State.PENDING_TOO_LONG: Reason.PROGRESS_DEADLINE, State.PAUSED_DOWN: Reason.PAUSED}


def compute_status(case: Case, decision: Decision, children: ChildPlan) -> SupervisorStatus:
    old, row = case.status, decision.state.value
    is_new_run = decision.ledger.run not in {old.run, 0}
    return old.model_copy(
        update={
            "observed_generation": case.observed.generation,
            "phase": row.phase or _phase_alive(case),
            "health": row.health,
            "conditions": update_conditions(
                old.conditions or (),
                _said(case, decision),
                case.observed.generation,
                case.now.second,
            ),
            "outcome": decision.outcome,
            "run": decision.ledger.run,
            "restarts": decision.ledger.restarts,
            "restarts_counted": decision.ledger.counted,
            "forgiven_run": decision.ledger.forgiven,
            "restart_summary": f"{decision.ledger.counted}/{case.spec.restart.max_restarts}",
            "last_restart_time": case.now.second if is_new_run else old.last_restart_time,
            "next_restart_time": decision.next_restart,
            "missed_heartbeats": _missed(case, decision),
            "last_termination": decision.ended,
            **_pod_fields(case, decision),
            **_beat_fields(case, decision),
            **_tree_fields(case),
            **_team_fields(case),
            "child_orders": list(children.orders) or None,
        }
    )


def _missed(case: Case, decision: Decision) -> int | None:
    """Written at verdict and recovery; between them it stands, and a new run starts from 0."""
    if decision.missed is not None:
        return decision.missed
    pod = case.newest
    is_new = pod is not None and pod.uid != case.status.pod_uid
    return 0 if is_new else case.status.missed_heartbeats


def _phase_alive(case: Case) -> Phase:
    """ACTIVE once the newest pod has shown life."""
    pod, beat = case.newest, case.observed.beat
    if pod is None or pod.finished:
        return Phase.SPAWNING
    has_beaten = beat is not None and beat.silence is not None
    return Phase.ACTIVE if has_beaten or (not case.beats and pod.ready) else Phase.SPAWNING


def _pod_fields(case: Case, decision: Decision) -> dict[str, object]:
    """Of a pod that is gone the names stay, so that its absence can be told from a fresh start."""
    if decision.settled:
        return dict.fromkeys(("pod_name", "pod_uid", "node_name", "start_time"))
    pod = case.newest
    if pod is None:
        return {}
    known_start = case.status.start_time if case.status.pod_uid == pod.uid else None
    return {
        "pod_name": pod.name,
        "pod_uid": pod.uid,
        "node_name": _node(case, pod),
        "start_time": pod.started_at or known_start,
    }


def _node(case: Case, pod: PodView) -> str | None:
    """Told with the next news: that a starting pod has its node is not worth a write of its own."""
    is_news = pod.running or pod.finished or bool(pod.waiting)
    is_told = case.status.pod_uid == pod.uid and case.status.node_name is not None
    return (pod.node or None) if is_news or is_told else None


def _beat_fields(case: Case, decision: Decision) -> dict[str, object]:
    """The heartbeat column, at transitions; between them it is refreshed under a budget."""
    old, beat = case.status, case.observed.beat
    if case.spec.heartbeat.source is HeartbeatSource.NONE:
        return {"last_heartbeat_time": None, "health_metrics": None}
    column = case.observed.beat_column
    if column is BeatColumn.OMIT:
        return {"last_heartbeat_time": None}
    if beat is None or beat.silence is None or beat.missing:
        return {}
    if column is BeatColumn.KEEP and not _is_transition(case, decision):
        return {}
    moment = (case.now.wall - timedelta(seconds=beat.silence)).replace(microsecond=0)
    return {
        "last_heartbeat_time": moment,
        "health_metrics": beat.metrics if beat.metrics is not None else old.health_metrics,
    }


def _tree_fields(case: Case) -> dict[str, object]:
    tree = case.observed.tree
    return {
        "hierarchy_level": len(tree.lineage.ancestors),
        "children": count(tree.children) if tree.children else None,
    }


def _team_fields(case: Case) -> dict[str, object]:
    link, led = case.observed.team, case.observed.teams
    order = case.order or None
    return {
        "member_of": link
        and MemberOf(team=link.team, member=link.member, role=link.role, order=order),
        "teams": list(led[:TEAMS_SHOWN]) or None,
        "total_teams": len(led) if led else None,
        "total_members": sum(team.members for team in led) if led else None,
    }


def _is_transition(case: Case, decision: Decision) -> bool:
    row = decision.state.value
    return case.status.health is not row.health or case.ready_reason != decision.ready_reason


def _said(case: Case, decision: Decision) -> Iterator[Said]:
    row, message = decision.state.value, decision.message
    reason = decision.ready_reason
    yield Said(ConditionType.READY, row.ready, reason, message)
    yield _said_unresponsive(case, decision)
    if case.observed.mode is OperatingMode.PAUSED:
        yield Said(ConditionType.PAUSED, TRUE, Reason.PAUSED, tell_mode(case))
    else:
        yield Said(ConditionType.PAUSED, FALSE, Reason.NOT_PAUSED)
    # kstatus takes the first of these two: a pod that is pending for too long has failed.
    if row.stalled:
        yield Said(ConditionType.STALLED, TRUE, PROGRESS.get(decision.state, reason), message)
    if row.reconciling:
        yield Said(ConditionType.RECONCILING, TRUE, row.reconciling, message)
    if row.succeeded:
        yield Said(ConditionType.SUCCEEDED, TRUE, Reason.SUCCEEDED, message)
    yield from _said_tree(case)


def _said_tree(case: Case) -> Iterator[Said]:
    tree = case.observed.tree
    if case.spec.parent_ref:
        status = FALSE if tree.lineage.problem else TRUE
        reason = tree.lineage.problem or Reason.RESOLVED
        yield Said(ConditionType.PARENT_RESOLVED, status, reason, tell_line(tree.lineage))
    if tree.children:
        well = all(is_well(child) for child in tree.children)
        reason = Reason.CHILDREN_HEALTHY if well else Reason.DEGRADED
        status, message = TRUE if well else FALSE, tell_children(tree.children)
        yield Said(ConditionType.CHILDREN_HEALTHY, status, reason, message)


def _said_unresponsive(case: Case, decision: Decision) -> Said:
    kind = ConditionType.UNRESPONSIVE
    if decision.verdict:
        stored = case.stored_verdict
        message = decision.message
        if stored and stored.reason == decision.verdict and decision.state is State.FAILED:
            message = stored.message
        return Said(kind, TRUE, decision.verdict, message)
    if decision.state in {State.RUNNING, State.TEMPLATE_REFUSED} and case.beats:
        return Said(kind, FALSE, Reason.HEARTBEAT_FRESH)
    return Said(kind, FALSE if not case.beats else UNKNOWN, Reason.NOT_JUDGED)
