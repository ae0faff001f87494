"""What holds in every story: random users, agents, nodes and crashes of the operator."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from supervisor_operator.core.heartbeat import evaluate_beats
from supervisor_operator.core.plan import plan_supervisor
from tests.support.sim import Sim
from tests.unit.core.test_edges import beating

SPECS = st.fixed_dictionaries(
    {
        "heartbeat": st.sampled_from([{"source": "None"}, {}, {"intervalSeconds": 2}]),
        "restart": st.fixed_dictionaries(
            {
                "maxRestarts": st.integers(0, 3),
                "policy": st.sampled_from(["OnFailure", "Always", "Never"]),
                "onUnresponsive": st.sampled_from(["Restart", "MarkOnly"]),
                "keepFinishedPods": st.integers(0, 2),
            }
        ),
    }
)


def number_of(pod: str) -> int:
    return int(pod.rpartition("-r")[2])


class Life(RuleBasedStateMachine):
    """`Sim` itself refuses a second unfinished pod and a name used twice."""

    sim: Sim

    @initialize(spec=SPECS)
    def begin(self, spec: dict[str, Any]) -> None:
        self.sim = Sim(**spec).settle()
        self.requests = 0

    def _has_pod(self) -> bool:
        return bool(self.sim.unfinished) and self.sim.pod in self.sim.unfinished

    @precondition(_has_pod)
    @rule()
    def start(self) -> None:
        if not self.sim.pod.terminating:
            self.sim.start()

    @precondition(_has_pod)
    @rule()
    def beat(self) -> None:
        if self.sim.pod.running:
            self.sim.beat()

    @precondition(_has_pod)
    @rule(code=st.sampled_from([0, 1, 137]))
    def exit(self, code: int) -> None:
        pod = self.sim.pod
        if pod.ended_by:
            self.sim.finish_kill(code)
        elif pod.running:
            self.sim.exit(code)

    @precondition(_has_pod)
    @rule()
    def evict(self) -> None:
        self.sim.change(phase="Failed", reason="Evicted", disrupted=True, running=False)

    @precondition(lambda self: bool(self.sim.pods))
    @rule(data=st.data())
    def lose_a_pod(self, data: st.DataObject) -> None:
        self.sim.remove(data.draw(st.sampled_from(sorted(self.sim.pods))))

    @rule(seconds=st.sampled_from([1, 10, 125, 700]))
    def wait(self, seconds: int) -> None:
        self.sim.wait(seconds)

    @rule(mode=st.sampled_from(["Running", "Paused", "Stopped"]))
    def set_mode(self, mode: str) -> None:
        self.sim.edit(operatingMode=mode)

    @rule(image=st.sampled_from(["a", "b"]))
    def set_image(self, image: str) -> None:
        self.sim.edit(agent={"image": image})

    @rule()
    def request_restart(self) -> None:
        self.requests += 1
        self.sim.edit(restartRequest=f"number {self.requests}")

    @rule()
    def restart_operator(self) -> None:
        self.sim.restart_operator()

    @rule()
    def crash_the_operator_after_its_actions_and_before_its_status(self) -> None:
        plan = self.sim.plan()
        for action in plan.actions:
            self.sim._apply(action)
        self.sim.restart_operator()

    @rule()
    def wipe_status(self) -> None:
        counted = self.sim.status.restarts_counted or 0
        forgiven = self.sim.status.forgiven_run or 0
        has_record = any(pod.run == self.sim.status.run for pod in self.sim.pods.values())
        # Of runs later than the newest pod nothing is left that could know them.
        left = max((pod.run for pod in self.sim.pods.values()), default=0)
        self.sim.created = [one for one in self.sim.created if number_of(one) <= left]
        self.sim.wipe_status().settle()
        if has_record and self.sim.status.run and forgiven < self.sim.status.run:
            assert (self.sim.status.restarts_counted or 0) >= counted, "no budget is refilled"

    @invariant()
    def a_settled_world_gives_an_empty_plan(self) -> None:
        self.sim.settle()
        plan = self.sim.plan()
        if not any(pod.terminating for pod in self.sim.unfinished):
            assert plan.actions == ()
            assert plan.status == self.sim.status

    @invariant()
    def never_two_copies(self) -> None:
        assert len(self.sim.unfinished) <= 1

    @invariant()
    def the_budget_holds(self) -> None:
        most = self.sim.spec_json["restart"]["maxRestarts"]
        assert (self.sim.status.restarts_counted or 0) <= most

    @invariant()
    def runs_only_grow(self) -> None:
        numbers = [number_of(name) for name in self.sim.created]
        assert numbers == sorted(numbers)

    @invariant()
    def stopped_means_no_pod_and_paused_starts_none(self) -> None:
        if self.sim.spec_json.get("operatingMode") == "Stopped":
            assert all(pod.terminating for pod in self.sim.unfinished)


def test_any_life() -> None:
    profile = settings(max_examples=100, stateful_step_count=25, deadline=None)
    run_state_machine_as_test(Life, settings=profile)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 3), st.randoms(use_true_random=False), st.booleans())
def test_pods_listed_in_any_order_give_the_same_plan(
    crashes: int,
    random: Random,
    ends: bool,  # noqa: FBT001
) -> None:
    sim = beating(restart={"keepFinishedPods": 5})
    for _ in range(crashes):
        sim.exit(3).wait(60).start().beat()
    if ends:
        sim.exit(3)
    observed = sim.observe()
    shuffled = list(observed.pods)
    random.shuffle(shuffled)
    other = replace(observed, pods=tuple(shuffled))
    assert plan_supervisor(other, sim.now()) == plan_supervisor(observed, sim.now())


@given(st.floats(0, 500), st.floats(0, 500))
def test_more_time_never_unmisses_a_beat(first: float, more: float) -> None:
    sim = beating()
    sim.mono += first
    before = evaluate_beats(sim.observe(), sim.pod, stored=False)
    sim.mono += more
    after = evaluate_beats(sim.observe(), sim.pod, stored=False)
    assert after.missed >= before.missed
    assert after.unresponsive >= before.unresponsive


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 3),
    st.lists(st.sampled_from(["crash", "freeze"]), max_size=8),
    st.sampled_from([-3600.0, 0.0, 3600.0]),
)
def test_restarts_are_exactly_as_many_as_faults_and_budget_allow(
    most: int, faults: list[str], skew: float
) -> None:
    # A clock set forward may end the reset window early, never a restart more within it.
    sim = beating(restart={"maxRestarts": most, "resetAfterSeconds": 604_800})
    for number, fault in enumerate(faults):
        if sim.status.phase == "FAILED":
            break
        if number == 1:
            sim.skew = skew  # the operator's own wall clock is set
        if fault == "crash":
            sim.exit(3)
        else:
            sim.silent(121).finish_kill()
        sim.wait(400)
        if sim.status.phase != "FAILED":
            sim.start().beat()
    assert len(sim.created) - 1 == min(len(faults), most)
    assert (sim.status.phase == "FAILED") == (len(faults) > most)
