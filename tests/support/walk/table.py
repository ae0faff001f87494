"""What each leaf field of a spec is set to while it is walked.

A field that the schema has and this table lacks fails the walk: a new field needs values here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

Json = dict[str, Any]

AGENT = {"image": "localhost/agent:1"}
NONE = {"source": "None"}
BASE: Json = {"agent": AGENT, "heartbeat": NONE}
BEATS: Json = {"heartbeat": {}}
CONTAINER = {"name": "agent"} | AGENT
TEMPLATE: Json = {"agent": {"template": {"spec": {"containers": [CONTAINER]}}}}
ONE_RULE: Json = {"restart": {"exitCodes": [{"codes": [3], "action": "Restart"}]}}
ONE_VARIABLE: Json = {"agent": AGENT | {"env": [{"name": "FIRST"}]}}
BLOCKS = ("agent", "heartbeat", "restart")


@dataclass(frozen=True, slots=True)
class Trouble:
    """A value that the schema admits and that cannot work; the condition that must say so."""

    value: Any
    reason: str
    condition: str = "Stalled"
    runs: tuple[int, int] = (0, 0)
    """Runs that begin with it, and with the way back."""
    of_member: bool = True
    """In a team: said by the member, not by the team."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Set to `first`, changed to `second`, removed; `runs` begin with each of the three."""

    first: Any
    second: Any
    base: Json = field(default_factory=dict)
    """Blocks that the spec has in place of the usual ones."""
    runs: tuple[int, int, int] = (0, 0, 0)
    troubles: tuple[Trouble, ...] = ()
    refused: bool = False
    """The field is there to be refused with a word of advice."""
    stays: bool = False
    """Removed, the last value stays: from then on it belongs to whoever is on call."""
    anew: bool = False
    """Other values mean other agents, so each of them is in its first run."""
    alone: bool = False
    """Not walked together with other fields: they would not go with it."""


def bundles(table: dict[str, Steps]) -> list[dict[str, Steps]]:
    """Fields that can be walked together: the same beginning, the same runs."""
    found: dict[str, dict[str, Steps]] = {}
    for path, steps in table.items():
        kinds = (steps.runs, steps.refused, steps.stays, steps.anew, steps.alone and path)
        found.setdefault(f"{steps.base} {kinds}", {})[path] = steps
    return list(found.values())


def shapes(first: Any, second: Any, base: Json | None = None, *troubles: Trouble) -> Steps:
    """A field that the pod is made from: each change replaces the pod."""
    return Steps(first, second, base or {}, runs=(1, 1, 1), troubles=troubles)


def refused(value: Any) -> Trouble:
    return Trouble(value, "InvalidTemplate")


def unschedulable(value: Any) -> Trouble:
    return Trouble(value, "Unschedulable", "Ready", runs=(1, 1))


def _pod(**spec: Any) -> Json:
    return {"containers": [CONTAINER]} | spec


SUPERVISOR: dict[str, Steps] = {
    ".description": Steps("one", "two"),
    ".policyVersion": Steps("v1", "v2"),
    ".agent.image": shapes(
        "localhost/agent:2", "localhost/agent:3", None, refused(" localhost/agent:4")
    ),
    ".agent.command": shapes(["run"], ["run", "fast"]),
    ".agent.args": shapes(["--one"], ["--one", "--two"]),
    ".agent.env[].name": shapes("ONE", "TWO", ONE_VARIABLE, refused("ONE=TWO")),
    ".agent.env[].value": shapes("one", "two", ONE_VARIABLE),
    ".agent.env[].valueFrom": replace(
        shapes(
            {"fieldRef": {"fieldPath": "metadata.name"}},
            {"fieldRef": {"fieldPath": "spec.nodeName"}},
            ONE_VARIABLE,
            refused({"fieldRef": {"fieldPath": "metadata.shoe"}}),
            refused({"fieldRef": 7}),
        ),
        alone=True,
    ),
    ".agent.envFrom": shapes(
        [{"configMapRef": {"name": "one"}}],
        [{"secretRef": {"name": "two"}}],
        None,
        refused([{"configMapRef": {}}]),
        refused([{"nobodyRef": {"name": "one"}}]),
    ),
    ".agent.resources": shapes(
        {"requests": {"cpu": "10m"}},
        {"requests": {"cpu": "20m"}, "limits": {"memory": "64Mi"}},
        None,
        refused({"limits": {"cpu": "lots"}}),
        refused({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        unschedulable({"requests": {"cpu": "5000"}}),
    ),
    ".agent.workingDir": shapes("/one", "/two"),
    ".agent.terminationGracePeriodSeconds": shapes(1, 30),
    ".agent.template.metadata.labels": shapes(
        {"colour": "red"}, {"colour": "blue"}, TEMPLATE, refused({"colour": "two words"})
    ),
    ".agent.template.metadata.annotations": shapes(
        {"note": "one"}, {"note": "two"}, TEMPLATE, refused({"two words": "one"})
    ),
    ".agent.template.spec": shapes(
        _pod(terminationGracePeriodSeconds=1),
        _pod(hostname="here"),
        TEMPLATE,
        refused({"containers": [{"name": "agent"}]}),
        refused({"containers": "none"}),
        refused(_pod(restartPolicy="Always")),
        refused(_pod(wheels=4)),
        Trouble(_pod(serviceAccountName="robot"), "CreateRefused"),
        unschedulable(_pod(nodeSelector={"planet": "mars"})),
    ),
    ".updateStrategy.type": Steps("OnDelete", "Recreate"),
    ".progressDeadlineSeconds": Steps(60, 900),
    ".childFailurePolicy": Steps("Restart", "Fail"),
    ".config": shapes({"depth": 1}, {"depth": 2, "names": ["a"]}),
    # From Stopped to Paused: one that is made Paused has no pod either.
    ".operatingMode": Steps("Stopped", "Paused", runs=(0, 0, 1)),
    ".heartbeat.source": replace(shapes("API", "None", BEATS), alone=True),
    ".heartbeat.intervalSeconds": shapes(40, 60, BEATS),
    ".heartbeat.missedThreshold": Steps(5, 7, BEATS),
    ".heartbeat.startupSeconds": Steps(300, 600, BEATS),
    ".heartbeat.file": shapes("/beats/one", "/beats/two", BEATS, refused("/etc/beat")),
    ".heartbeat.maxBusySeconds": Steps(60, 600, BEATS),
    ".restart.policy": Steps("Always", "Never"),
    ".restart.maxRestarts": Steps(0, 7),
    ".restart.delaySeconds": Steps(1, 20),
    ".restart.maxDelaySeconds": Steps(60, 600),
    ".restart.resetAfterSeconds": Steps(60, 900),
    ".restart.onUnresponsive": Steps("MarkOnly", "Restart", BEATS),
    ".restart.keepFinishedPods": Steps(0, 3),
    ".restart.exitCodes[].codes": Steps([4], [4, 5], ONE_RULE),
    ".restart.exitCodes[].action": Steps("Fail", "Ignore", ONE_RULE),
    ".restartRequest": Steps("once", "twice", runs=(1, 1, 0)),
    ".parentRef.name": Steps(
        "top-x", "top-y", troubles=(Trouble("nobody", "ParentMissing", "ParentResolved"),)
    ),
}


def one_member(**entry: Any) -> Json:
    return {"members": [{"name": "a", "template": BASE} | entry]}


OF_A_TEAM: dict[str, Steps] = {
    ".supervisorRef.name": Steps(
        "top-x",
        "top-y",
        base={"whenSupervisorGone": "Keep"},  # or a slow walk stops the members after 30 s
        troubles=(Trouble("nobody", "SupervisorNotFound", "SupervisorResolved", of_member=False),),
    ),
    ".whenSupervisorGone": Steps("Keep", "Stop"),
    ".objective": Steps("one", "two"),
    ".description": Steps("one", "two"),
    ".config": Steps({"depth": 1}, {"depth": 2}),
    ".operatingMode": Steps("Stopped", "Paused", runs=(0, 0, 1)),
    ".members[].name": Steps("b", "c", anew=True, alone=True),
    ".members[].role": Steps("SCOUT", "LEAD"),
    ".members[].replicas": Steps(2, 1, anew=True, alone=True),
    ".members[].metadata": Steps({"note": "one"}, {"note": "two"}),
    ".members[].template.operatingMode": Steps("Stopped", "Paused", stays=True),
    ".members[].template.parentRef": Steps({"name": "top-x"}, {}, refused=True),
    ".members[].template.restartRequest": Steps("once", "twice", refused=True),
    ".members[].ref.name": Steps(
        "{me}-y",
        "{me}-z",
        {"members": [{"name": "a", "ref": {"name": "{me}-x"}}]},
        troubles=(Trouble("{me}-nobody", "NotFound", "MembersResolved", of_member=False),),
        anew=True,
    ),
    ".restartStrategy": Steps("OneForAll", "RestForOne"),
    ".maxTeamRestarts": Steps(1, 9),
    ".restartWindowSeconds": Steps(60, 900),
    ".restartRequest": Steps("once", "twice", runs=(1, 1, 0)),
    ".maxUnhealthy": Steps("50%", 1),
    ".maxConcurrentRestarts": Steps(2, 3),
}


def _in_team(steps: Steps, base: Json) -> Steps:
    """Troubles are a member's own; one of each field shows that they reach it."""
    return replace(steps, base=base, troubles=steps.troubles[:1])


def _in_defaults(path: str, steps: Steps) -> Steps:
    """The block of this field stands in the team's defaults; the member lacks it."""
    spec = BASE | steps.base
    block = path.split(".")[1]
    rest = {name: value for name, value in spec.items() if name != block}
    base = {"defaults": {block: spec.get(block, {})}} | one_member(template=rest)
    return _in_team(steps, base)


def _in_member(steps: Steps) -> Steps:
    return _in_team(steps, one_member(template=BASE | steps.base))


TEAM: dict[str, Steps] = {
    **{
        f".defaults{path}": _in_defaults(path, steps)
        for path, steps in SUPERVISOR.items()
        if path.split(".")[1] in BLOCKS
    },
    **{
        f".members[].template{path}": _in_member(steps)
        for path, steps in SUPERVISOR.items()
        if path != ".parentRef.name"
    },
    **{path: replace(steps, base=one_member() | steps.base) for path, steps in OF_A_TEAM.items()},
}
