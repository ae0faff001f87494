"""What a team asks of one of its agents at this moment; None for an agent of no team."""

from __future__ import annotations

from dataclasses import dataclass

from supervisor_operator.api.v1alpha1.meta import OperatingMode


@dataclass(frozen=True, slots=True)
class TeamLink:
    team: str
    member: str
    role: str
    mode: OperatingMode = OperatingMode.RUNNING
    waits_for_order: bool = False
    """A counted failure is answered by the team (OneForAll, RestForOne), not by the agent alone."""
    order: int = 0
    """Number of the order in force: every new pod is stamped with it."""
    in_order: bool = False
    may_stop: bool = False
    may_start: bool = True
    is_trigger: bool = False
    is_request: bool = False
    """Somebody asked for the order: it brings back those that had failed, too."""
    allowed: bool = True
    """Not more members are unhealthy than maxUnhealthy."""
    has_slot: bool = True
    """Not more members are being restarted than maxConcurrentRestarts."""
    exhausted: bool = False
    """maxTeamRestarts is used up."""
