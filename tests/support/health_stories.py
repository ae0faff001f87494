"""One story per state of a Supervisor, told to the real plan; what it leaves is an object to read.

The golden health answers and the tests of the API and the plugin all look at these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from supervisor_operator.api.v1alpha1.meta import GROUP, VERSION
from supervisor_operator.core.observed import Observed, Refusal, RefusalKind
from supervisor_operator.core.plan import plan_supervisor
from supervisor_operator.core.states import State
from supervisor_operator.kube.report import dump_status
from tests.support.sim import START, Sim
from tests.support.team_sim import TeamSim, member
from tests.support.tree_sim import TreeSim

NONE = {"source": "None"}
NO_AGENT = {"agent": None}
ONCE = {"restart": {"maxRestarts": 0}}


@dataclass(frozen=True, slots=True)
class Told:
    """The object as the API server would have it, and the time at which the story ends."""

    item: dict[str, Any]
    now: datetime


def told(sim: Sim) -> Told:
    spec = {key: value for key, value in sim.spec_json.items() if value is not None}
    item = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Supervisor",
        "metadata": {
            "name": sim.name,
            "namespace": "default",
            "uid": sim.uid,
            "generation": sim.generation,
            "resourceVersion": "1",
            "creationTimestamp": START.isoformat().replace("+00:00", "Z"),
        },
        "spec": spec,
        "status": dump_status(sim.status),
    }
    return Told(item, sim.wall)


def _running(**spec: Any) -> Sim:
    return Sim(**({"heartbeat": NONE} | spec)).settle().start()


def _beating(**spec: Any) -> Sim:
    return Sim(**spec).settle().start().beat()


def _refused(sim: Sim, kind: RefusalKind, message: str) -> Sim:
    """The pass in which the API server says no."""
    return _as_observed(sim, sim.observe(Refusal(kind, message)))


def _as_observed(sim: Sim, observed: Observed) -> Sim:
    sim.status = plan_supervisor(observed, sim.now()).status
    return sim


def _template_refused() -> Sim:
    sim = _running()
    sim.refuse_try = Refusal(RefusalKind.TEMPLATE, "spec.containers[0].image: Required value")
    return sim.edit(agent={"image": "b"})


def _policy_missing() -> Sim:
    sim = Sim()
    sim.policy_present = False
    return sim.settle()


def _invalid() -> Sim:
    sim = _running()
    invalid = "spec.restart.maxRestarts: Input should be a valid integer"
    return _as_observed(sim, replace(sim.observe(), invalid=invalid))


def _crew(strategy: str, **spec: Any) -> TeamSim:
    team = TeamSim(member("a"), member("b"), member("c"), restartStrategy=strategy, **spec)
    team.settle().start()
    while set(team.phases().values()) != {"ACTIVE"}:
        team.start()
    return team


def _waiting_for_team() -> Sim:
    return _crew("OneForAll").crash("crew-b").agents["crew-b"]


def _held_by_team() -> Sim:
    return _crew("OneForOne", maxUnhealthy=1).crash("crew-a").crash("crew-b").agents["crew-b"]


def _family(**boss: Any) -> TreeSim:
    parents = {"boss": None, "kid": "boss", "other": "boss"}
    return TreeSim(parents, boss=NO_AGENT | boss, kid=ONCE, other=ONCE).settle()


def _boss(tree: TreeSim) -> Sim:
    return tree.nodes["boss"]


def _finished_family() -> Sim:
    tree = _family().start()
    for name in ("kid", "other"):
        tree.nodes[name].exit(0)
    return _boss(tree.settle())


def _resting_family(mode: str) -> Sim:
    tree = _family()
    for name in ("kid", "other"):
        tree.nodes[name].edit(operatingMode=mode)
    return _boss(tree.settle())


QUOTA = 'pods "hello-r1" is forbidden: exceeded quota: pods, requested: 1, used: 10, limited: 10'
NO_PATCH = 'pods "hello-r1" is forbidden: cannot patch resource "pods"'
MARK_ONLY = {"onUnresponsive": "MarkOnly"}

STORIES: dict[State, Callable[[], Sim]] = {
    State.STARTING: lambda: Sim().settle(),
    State.PENDING: lambda: Sim().settle().change(waiting="ImagePullBackOff"),
    State.PENDING_TOO_LONG: lambda: Sim().settle().change(waiting="ImagePullBackOff").wait(601),
    State.RUNNING: _beating,
    State.UNRESPONSIVE: lambda: _beating().silent(120),
    State.MARKED: lambda: _beating(restart=MARK_ONLY).silent(120),
    State.HELD: lambda: _beating().change(node_lost=True).silent(125, relay=False),
    State.KILL_REFUSED: lambda: _refused(_beating().silent(120), RefusalKind.KILL, NO_PATCH),
    State.BACK_OFF: lambda: _running().exit(3),
    State.WAITING_FOR_TEAM: _waiting_for_team,
    State.BACK_OFF_HELD: _held_by_team,
    State.RESTARTING: lambda: _running().change(terminating=True),
    State.UPDATING: lambda: _running().edit(agent={"image": "b"}),
    State.STUCK: lambda: _running().change(terminating=True).wait(41),
    State.TEMPLATE_REFUSED: _template_refused,
    State.CREATE_REFUSED: lambda: _refused(Sim(), RefusalKind.CREATE, QUOTA),
    State.NAME_CONFLICT: lambda: _refused(
        Sim(), RefusalKind.CONFLICT, "Pod hello-r1 exists and is not ours"
    ),
    State.POLICY_MISSING: _policy_missing,
    State.INVALID_SPEC: _invalid,
    State.FAILED: lambda: _running(restart={"maxRestarts": 0}).exit(3),
    State.FINISHED: lambda: _running().exit(0),
    State.PAUSED: lambda: _running().edit(operatingMode="Paused"),
    State.PAUSED_DOWN: lambda: _running().edit(operatingMode="Paused").exit(3),
    State.STOPPING: lambda: _running().edit(operatingMode="Stopped"),
    State.STOPPED: lambda: _running().edit(operatingMode="Stopped").remove(),
    State.NO_AGENT: lambda: Sim("boss", **NO_AGENT).settle(),
    State.CHILDREN_STARTING: lambda: _boss(_family()),
    State.CHILDREN_ACTIVE: lambda: _boss(_family().start()),
    State.CHILDREN_DEGRADED: lambda: _boss(_family().start().crash("kid")),
    State.CHILDREN_FAILED: lambda: _boss(_family().start().crash("kid").crash("other")),
    State.CHILDREN_FINISHED: _finished_family,
    State.CHILDREN_PAUSED: lambda: _resting_family("Paused"),
    State.CHILDREN_STOPPED: lambda: _resting_family("Stopped"),
}
MORE: dict[str, Callable[[], Sim]] = {
    "not-seen": Sim,
    "restart-requested": lambda: _running().edit(restartRequest="now"),
    "relay-down": lambda: _beating().change(relay_running=False).silent(125, relay=False),
    "child-failed": lambda: _boss(_family(childFailurePolicy="Fail").start().crash("kid")),
    "team-paused": lambda: _crew("OneForOne").edit(operatingMode="Paused").agents["crew-b"],
}


def all_stories() -> dict[str, Callable[[], Sim]]:
    named = {state.name.lower().replace("_", "-"): story for state, story in STORIES.items()}
    return named | MORE
