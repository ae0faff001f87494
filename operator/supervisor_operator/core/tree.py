"""The supervision tree: who is above and below whom, and what that means for modes and phases.

`parentRef` names the supervisor above. Cycles, missing parents and a tree that is too deep are
reported and not followed, so that one wrong reference never stops a healthy agent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from supervisor_operator.api.v1alpha1.meta import Health, OperatingMode, Phase
from supervisor_operator.api.v1alpha1.supervisor_status import Children

MAX_DEPTH = 5
STRICTNESS = (OperatingMode.RUNNING, OperatingMode.PAUSED, OperatingMode.STOPPED)


class LineProblem(StrEnum):
    NONE = ""
    MISSING = "ParentMissing"
    CYCLE = "ParentCycle"
    TOO_DEEP = "TooDeep"


@dataclass(frozen=True, slots=True)
class Lineage:
    """The supervisors above one, nearest first, as far as they can be followed."""

    ancestors: tuple[str, ...] = ()
    problem: LineProblem = LineProblem.NONE
    culprit: str = ""


@dataclass(frozen=True, slots=True)
class ChildView:
    """What a supervisor needs to know of one directly below it."""

    name: str
    phase: Phase | None
    health: Health | None
    finished: bool = False
    uid: str = ""
    run: int = 0
    failed_run: int | None = None
    """The run in which it FAILED; None: it has not."""
    parent_order: int = 0
    """The order of the supervisor above that its newest pod was started under."""


@dataclass(frozen=True, slots=True)
class TreeView:
    lineage: Lineage = Lineage()
    children: tuple[ChildView, ...] = ()
    ordered_run: int | None = None
    """The failed run after which the supervisor above ordered this one to start again."""
    order: int = 0
    """Number of that order."""


def trace(
    name: str, parent_of: Callable[[str], str | None], exists: Callable[[str], bool]
) -> Lineage:
    """Follow parentRef upwards from `name`."""
    ancestors: list[str] = []
    above = parent_of(name)
    while above is not None:
        if above == name or above in ancestors:
            return Lineage((), LineProblem.CYCLE, above)
        if not exists(above):
            return Lineage(tuple(ancestors), LineProblem.MISSING, above)
        if len(ancestors) == MAX_DEPTH:
            return Lineage(tuple(ancestors), LineProblem.TOO_DEEP, above)
        ancestors.append(above)
        above = parent_of(above)
    return Lineage(tuple(ancestors))


def strictest(modes: Iterable[OperatingMode]) -> OperatingMode:
    """Stopped before Paused before Running."""
    return max(modes, key=STRICTNESS.index)


def count(children: Iterable[ChildView]) -> Children:
    found = tuple(children)
    return Children(
        total=len(found),
        active=sum(child.phase is Phase.ACTIVE for child in found),
        unresponsive=sum(child.health is Health.UNRESPONSIVE for child in found),
        failed=sum(child.phase is Phase.FAILED for child in found),
    )


class RollUp(StrEnum):
    """What several agents are, taken together."""

    EMPTY = "empty"
    STARTING = "starting"
    ACTIVE = "active"
    DEGRADED = "degraded"
    FAILED = "failed"
    FINISHED = "finished"
    PAUSED = "paused"
    STOPPED = "stopped"


def roll_up(children: Iterable[ChildView]) -> RollUp:
    found = tuple(children)
    if not found:
        return RollUp.EMPTY
    if all(child.finished for child in found):
        return RollUp.FINISHED
    if any(child.phase is Phase.ACTIVE for child in found):
        settled = all(is_well(child) and child.phase is not Phase.SPAWNING for child in found)
        return RollUp.ACTIVE if settled else RollUp.DEGRADED
    # Nobody waits for those that were told to rest.
    phases = {child.phase for child in found if not child.finished}
    awake = phases - {Phase.PAUSED, Phase.TERMINATED}
    if awake:
        return RollUp.FAILED if awake == {Phase.FAILED} else RollUp.STARTING
    return RollUp.PAUSED if Phase.PAUSED in phases else RollUp.STOPPED


def is_well(child: ChildView) -> bool:
    """Neither failed nor silent; one that is starting, stopped or finished is not unwell."""
    return child.phase is not Phase.FAILED and child.health is not Health.UNRESPONSIVE
