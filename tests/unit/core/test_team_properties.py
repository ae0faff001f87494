"""What holds in every story of a team: random members, faults, edits and orders of looking."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from typing_extensions import override

from supervisor_operator.core.observed import PodView
from supervisor_operator.core.team.members import wanted_agents
from supervisor_operator.core.team.orders import Line
from supervisor_operator.core.team.plan import line_of
from tests.support.sim import Sim
from tests.support.team_sim import TEAM, TeamSim, member

NAMES = "abcd"
MOST = 2
DEATHS = 0.1
RESTART = {"restart": {"maxRestarts": MOST, "resetAfterSeconds": 604_800, "delaySeconds": 1}}
SPECS = st.fixed_dictionaries(
    {
        "restartStrategy": st.sampled_from(["OneForOne", "OneForAll", "RestForOne"]),
        "maxTeamRestarts": st.integers(0, 3),
        "restartWindowSeconds": st.sampled_from([60, 600]),
        "maxUnhealthy": st.sampled_from([None, 1, "50%", 4]),
        "maxConcurrentRestarts": st.integers(1, 2),
    }
)
AGENTS = st.sampled_from([f"crew-{name}" for name in NAMES])
MODES = st.sampled_from(["Running", "Paused", "Stopped"])


def some(*names: str) -> list[dict[str, Any]]:
    return [member(name, template=RESTART) for name in names]


class Watched(TeamSim):
    """Members are looked at in any order, and every new or ending pod is checked as it comes.

    Now and then the operator dies in a pass, after its actions and before its status.
    """

    def __init__(self, random: Random, **spec: Any) -> None:
        super().__init__(*some(*NAMES), **spec)
        self.random = random

    @override
    def _member_pass(self, name: str) -> bool:
        sim, line = self.agents[name], self.line()
        before, ending = set(sim.pods), terminating(sim)
        restarts = sim.status.restarts_counted or 0
        changed = self._dies_in_a_pass_over(sim) or super()._member_pass(name)
        for pod in (pod for pod in sim.pods.values() if pod.name not in before):
            self._started(line, sim, pod, counts=pod.counted > restarts)
        for _ in terminating(sim) - ending:
            self._stopped(line, sim)
        return changed

    @override
    def _round(self) -> bool:
        names = list(self.agents)
        self.random.shuffle(names)
        return any([self._team_pass(), *map(self._look, names)])

    def _dies_in_a_pass_over(self, sim: Sim) -> bool:
        is_dying = self.random.random() < DEATHS
        for action in self._sync(sim).plan().actions if is_dying else ():
            sim._apply(action)
        return is_dying

    @override
    def _team_pass(self) -> bool:
        before = self.status
        changed = super()._team_pass()
        if self.random.random() < DEATHS:
            self.status = before
            return True
        return changed

    def _look(self, name: str) -> bool:
        return name in self.agents and self._member_pass(name)

    def line(self) -> Line:
        observed = self.observe()
        return line_of(observed, wanted_agents(TEAM, observed.spec), self.wall)

    def _started(self, line: Line, sim: Sim, pod: PodView, *, counts: bool) -> None:
        order = line.order
        if pod.run_reason == "GroupRestart":
            assert order is not None
            assert pod.order == order.id, "every pod of a member gets the current number"
            assert not still_old(self, line, sim, order.members), "nobody starts before all ended"
            assert not counts or order.trigger is None or order.trigger.supervisor == sim.name
        elif counts and not line.is_group:
            limit = line.spec.max_concurrent_restarts
            young = [one for one in self.agents.values() if is_on_its_way(one)]
            assert len(young) <= limit, "maxConcurrentRestarts"

    def _stopped(self, line: Line, sim: Sim) -> None:
        if sim.condition("Ready") != "Unknown/GroupRestart" or line.order is None:
            return
        members = line.order.members
        if sim.name in members:
            later = members[members.index(sim.name) + 1 :]
            assert not still_old(self, line, sim, later), "reverse list order"


def terminating(sim: Sim) -> set[str]:
    return {pod.name for pod in sim.pods.values() if pod.terminating}


def is_on_its_way(sim: Sim) -> bool:
    return any(not pod.running and pod.restarts for pod in sim.unfinished)


def still_old(team: TeamSim, line: Line, me: Sim, names: list[str]) -> list[str]:
    """Who still has a pod from before the order, and can obey it."""
    able = {agent.name for agent in line.agents if agent.can_obey}
    return [
        name
        for name in names
        if name in able and name != me.name
        for pod in team.agents[name].unfinished
        if pod.order < line.order_id
    ]


class Together(RuleBasedStateMachine):
    team: Watched

    @initialize(spec=SPECS, seed=st.integers(0, 99))
    def begin(self, spec: dict[str, Any], seed: int) -> None:
        self.team = Watched(Random(seed), **spec)  # noqa: S311 - the same again
        self.team.settle()
        self.requests = 0
        self.orders: dict[int, Any] = {}

    def _do(self, name: str, act: Callable[[Sim], object]) -> None:
        """What happens to an agent that runs; the operator looks afterwards."""
        sim = self.team.agents.get(name)
        if sim and sim.unfinished and sim.pod.running and not sim.pod.terminating:
            act(self.team._sync(sim))
        self.team.settle()

    @rule()
    def start(self) -> None:
        self.team.start()

    @rule(name=AGENTS)
    def start_one(self, name: str) -> None:
        if name in self.team.agents:
            self.team.start(name)

    @rule(name=AGENTS, code=st.sampled_from([0, 3, 3, 3]))
    def exit(self, name: str, code: int) -> None:
        self._do(name, lambda sim: sim.exit(code))

    @rule(name=AGENTS)
    def evict(self, name: str) -> None:
        facts = {"phase": "Failed", "reason": "Evicted", "disrupted": True, "running": False}
        self._do(name, lambda sim: sim.change(**facts))

    @rule(name=AGENTS)
    def lose_the_pod(self, name: str) -> None:
        self._do(name, lambda sim: sim.remove())

    @rule()
    def end_what_is_ending(self) -> None:
        self.team.reap()

    @rule(seconds=st.sampled_from([1, 5, 130]))
    def wait(self, seconds: int) -> None:
        self.team.wait(seconds)

    @rule(name=AGENTS, mode=MODES)
    def set_a_members_mode(self, name: str, mode: str) -> None:
        if name in self.team.agents:
            self.team.edit_agent(name, operatingMode=mode)

    @rule(mode=MODES)
    def set_the_mode(self, mode: str) -> None:
        self.team.edit(operatingMode=mode)

    @rule(names=st.sets(st.sampled_from(NAMES), min_size=1))
    def set_the_members(self, names: set[str]) -> None:
        self.team.edit(members=some(*sorted(names)))

    @rule()
    def ask_for_a_restart(self) -> None:
        self.requests += 1
        self.team.edit(restartRequest=f"number {self.requests}")

    @rule(name=AGENTS)
    def delete_an_agent(self, name: str) -> None:
        if name in self.team.agents:
            self.team.delete(name).settle()

    @invariant()
    def orders_are_numbered_and_within_their_budget(self) -> None:
        order = self.team.status.order
        if order is None:
            return
        if order.id not in self.orders:
            assert order.id > max(self.orders, default=0)
            self.orders[order.id] = order
        if order.reason != "MemberFailed":
            self.orders = {order.id: order}  # who asks for one gives the budget back
        window = timedelta(seconds=self.team.spec_json["restartWindowSeconds"])
        recent = [
            one
            for one in self.orders.values()
            if one.reason == "MemberFailed" and order.time - one.time < window
        ]
        assert len(recent) <= self.team.spec_json["maxTeamRestarts"]

    @invariant()
    def budgets_hold(self) -> None:
        for sim in self.team.agents.values():
            assert (sim.status.restarts_counted or 0) <= MOST

    @invariant()
    @precondition(lambda self: bool(self.team.agents))
    def a_settled_team_has_nothing_to_do(self) -> None:
        plan = self.team.settle().plan()
        assert plan.actions == ()
        assert plan.status == self.team.status

    @override
    def teardown(self) -> None:
        """Left alone and allowed to, everybody comes to rest: no order waits for ever."""
        if not hasattr(self, "team"):
            return
        team = self.team.edit(operatingMode="Running", maxUnhealthy=None)
        for name in list(team.agents):
            team.edit_agent(name, operatingMode="Running")
        for _ in range(10):
            team.reap().wait(12).start()
        assert set(team.phases().values()) <= {"ACTIVE", "FAILED", "TERMINATED"}, team.log[-5:]
        finished = {n for n, sim in team.agents.items() if sim.condition("Succeeded") != "-"}
        stopped = {n for n, phase in team.phases().items() if phase == "TERMINATED"}
        assert stopped == finished


def test_any_life_of_a_team() -> None:
    profile = settings(max_examples=15, stateful_step_count=20, deadline=None)
    run_state_machine_as_test(Together, settings=profile)
