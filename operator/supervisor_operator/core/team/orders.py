"""Group restarts: when one is ordered, and what it asks of each member at each moment.

The order in the team's status and the stamps on the members' pods are the whole state. Whoever
looks, whenever, comes to the same next step: stop in reverse list order, then start in list order.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from supervisor_operator.api.v1alpha1.meta import Health, OperatingMode, Phase
from supervisor_operator.api.v1alpha1.policies import RestartStrategy
from supervisor_operator.api.v1alpha1.team import TeamSpec
from supervisor_operator.api.v1alpha1.team_status import OrderTrigger, TeamOrder, TeamStatus
from supervisor_operator.core.link import TeamLink
from supervisor_operator.core.team.observed import AgentView

FAILURE = "MemberFailed"
REQUEST = "RestartRequested"
SOON = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Line:
    """The team in list order, those that are there now, and the order in force."""

    spec: TeamSpec
    status: TeamStatus
    agents: tuple[AgentView, ...]
    now: datetime
    mode: OperatingMode = OperatingMode.RUNNING
    uid: str = ""
    missing: tuple[str, ...] = ()
    """Who is wanted and not there, or not ours."""

    @property
    def order(self) -> TeamOrder | None:
        return self.status.order

    @property
    def order_id(self) -> int:
        """The number in force; where status was wiped, the highest that an agent carries."""
        return self.order.id if self.order else self.highest_stamp

    @property
    def highest_stamp(self) -> int:
        """Of all agents; one that was assigned may bring a higher one from its former team."""
        return max((agent.order for agent in self.agents), default=0)

    @property
    def ordered(self) -> tuple[AgentView, ...]:
        """Who the order in force concerns and still can obey it."""
        names = self.order.members if self.order else []
        by_name = {agent.name: agent for agent in self.agents}
        found = (by_name[name] for name in names if name in by_name)
        return tuple(agent for agent in found if agent.can_obey)

    @property
    def pending(self) -> tuple[AgentView, ...]:
        """Who still has to obey; one that FAILED meanwhile only where somebody asks it back."""
        is_request = self.order is not None and self.order.reason == REQUEST
        return tuple(
            agent
            for agent in self.ordered
            if agent.order < self.order_id and (is_request or not agent.failed)
        )

    @property
    def next_in_turn(self) -> AgentView | None:
        """Stops next or, where nobody is left to stop, starts next."""
        running = [agent for agent in self.ordered if _is_old(agent, self.order_id)]
        return running[-1] if running else next(iter(self.pending), None)

    @property
    def is_group(self) -> bool:
        return self.spec.restart_strategy is not RestartStrategy.ONE_FOR_ONE

    @property
    def order_times(self) -> list[datetime]:
        """Group restarts within the window; of a wiped status all that pods tell of, as of now."""
        window = timedelta(seconds=self.spec.restart_window_seconds)
        if self.status.observed_generation < 1:
            stamps = [agent.order for agent in self.agents if agent.owner == self.uid]
            told = min(max([0, *stamps]), self.spec.max_team_restarts)
            return [self.now.replace(microsecond=0)] * told
        return [time for time in self.status.order_times or () if self.now - time < window]

    @property
    def is_exhausted(self) -> bool:
        return self.is_group and len(self.order_times) >= self.spec.max_team_restarts


def link_of(line: Line, name: str, *, team: str, member: str, role: str) -> TeamLink:
    """What the team asks of one of its agents now."""
    me = next((agent for agent in line.agents if agent.name == name), None)
    in_order = me in line.ordered
    order = line.order
    return TeamLink(
        team=team,
        member=member,
        role=role,
        mode=line.mode,
        waits_for_order=line.is_group,
        order=line.order_id,
        in_order=in_order,
        may_stop=in_order and _may_stop(line, me),
        may_start=not in_order or _may_start(line, me),
        is_trigger=bool(order and order.trigger and order.trigger.supervisor == name),
        is_request=bool(order and order.reason == REQUEST),
        allowed=is_allowed(line),
        has_slot=_has_slot(line, me),
        exhausted=line.is_exhausted,
    )


def _may_stop(line: Line, me: AgentView | None) -> bool:
    """No later member still runs a pod from before the order."""
    after = line.ordered[line.ordered.index(me) + 1 :] if me in line.ordered else ()
    return not any(_is_old(agent, line.order_id) for agent in after)


def _may_start(line: Line, me: AgentView | None) -> bool:
    """All old pods are gone, the trigger's delay is over, and the member before me is up."""
    if any(_is_old(agent, line.order_id) for agent in line.ordered):
        return False
    order = line.order
    trigger = order.trigger.supervisor if order and order.trigger else ""
    for agent in line.ordered:
        if agent.name == trigger and agent.next_restart and agent.next_restart > line.now:
            return False
    before = line.ordered[: line.ordered.index(me)] if me in line.ordered else ()
    return not before or _is_up(before[-1], line)


def _is_old(agent: AgentView, order: int) -> bool:
    stamp = agent.unfinished_order
    return stamp is not None and stamp < order


def _is_up(agent: AgentView, line: Line) -> bool:
    """ACTIVE under this order, given its time to start, or past help: nobody waits for that."""
    if agent.failed or agent.finished or agent.refused:
        return True
    if agent.order < line.order_id:
        return False
    if agent.phase is Phase.ACTIVE:
        return True
    return agent.last_restart is not None and not _is_young(agent, line)


def _is_young(agent: AgentView, line: Line) -> bool:
    """Within its time to start; a start far ahead of us is of a clock that was set since."""
    limit = timedelta(seconds=agent.startup_seconds)
    return agent.last_restart is None or abs(line.now - agent.last_restart) < limit


def is_unhealthy(agent: AgentView, line: Line) -> bool:
    """Silent, failed or in back-off; not those that an order stopped."""
    if agent.health is Health.UNRESPONSIVE or agent.failed:
        return True
    return agent.backing_off and not (agent in line.ordered and agent.order < line.order_id)


def is_allowed(line: Line) -> bool:
    """Whether so few members are unhealthy that restarting them makes sense."""
    limit = line.spec.max_unhealthy
    if limit is None:
        return True
    most = limit if isinstance(limit, int) else len(line.agents) * int(limit.rstrip("%")) // 100
    return sum(is_unhealthy(agent, line) for agent in line.agents) <= most


def _has_slot(line: Line, me: AgentView | None) -> bool:
    """OneForOne: the first few in list order that want a new pod; a slot lasts until ACTIVE."""
    if line.is_group or me is None:
        return True
    most = line.spec.max_concurrent_restarts
    taken = [agent for agent in line.agents if _is_restarting(agent, line)]
    queue = [*taken, *(agent for agent in line.agents if _wants_a_pod(agent, line))]
    return me not in queue[most:] if me in queue else len(taken) < most


def _wants_a_pod(agent: AgentView, line: Line) -> bool:
    """Soon at least: those behind it in the list do not wait for a long back-off to end."""
    due = agent.next_restart or line.now
    return agent.backing_off and due <= line.now + SOON


def _is_restarting(agent: AgentView, line: Line) -> bool:
    """A restarted pod that has not shown life yet."""
    runs = agent.unfinished_order is not None
    is_starting = runs and agent.phase is Phase.SPAWNING
    return agent.restarts > 0 and is_starting and _is_young(agent, line)


def next_order(line: Line) -> TeamOrder | None:
    """The order that is due now: somebody asks for it, or a member's failure calls for it."""
    request = line.spec.restart_request
    if (
        request
        and request != line.status.handled_restart_request
        and line.status.observed_generation > 0
    ):
        return _order(line, [agent.name for agent in line.agents if agent.can_obey], REQUEST, None)
    if not line.is_group or line.is_exhausted or not is_allowed(line):
        return None
    triggers = [agent for agent in line.agents if calls_for_order(agent, line)]
    if not triggers:
        return None
    first = min(line.agents.index(agent) for agent in triggers)
    start = first if line.spec.restart_strategy is RestartStrategy.REST_FOR_ONE else 0
    names = {agent.name for agent in line.agents[start:] if agent.can_obey and not agent.failed}
    pending = {agent.name for agent in line.pending}
    members = [agent.name for agent in line.agents if agent.name in names | pending]
    trigger = line.agents[first]
    return _order(
        line, members, FAILURE, OrderTrigger(supervisor=trigger.name, pod_uid=trigger.pod_uid)
    )


def calls_for_order(agent: AgentView, line: Line) -> bool:
    """A failure that no order covers yet."""
    if not agent.waiting:
        return False
    return not (agent in line.ordered and agent.order < line.order_id)


def _order(line: Line, members: list[str], reason: str, trigger: OrderTrigger | None) -> TeamOrder:
    return TeamOrder(
        id=max(line.order_id, line.highest_stamp) + 1,
        time=line.now.replace(microsecond=0),
        reason=reason,
        trigger=trigger,
        members=members,
    )
