"""Who shall belong to a team: its members as single agents, in list order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from supervisor_operator.api.v1alpha1.meta import GROUP, VERSION
from supervisor_operator.api.v1alpha1.supervisor import SupervisorSpec
from supervisor_operator.api.v1alpha1.team import Member, TeamSpec
from supervisor_operator.core.team.observed import AgentView, TeamObserved
from supervisor_operator.core.words import MANAGED_BY, MANAGER, Label

Json = dict[str, Any]
ON_CALL = {"restartRequest", "operatingMode"}
"""Fields that belong to whoever is on call, not to the template."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One agent of the team; `spec` is None for a Supervisor that is only assigned."""

    supervisor: str
    member: str
    role: str
    metadata: Json | None = None
    spec: Json | None = None


def wanted_agents(team: str, spec: TeamSpec) -> tuple[Wanted, ...]:
    """One per Supervisor, also where two members come to the same."""
    holders = _holders(team, spec)
    contents = {one.name: None if one.ref else _member_spec(spec, one) for one in spec.members}
    return tuple(
        Wanted(name, member.name, member.role, member.metadata, contents[member.name])
        for member in spec.members
        for name in _supervisors(team, member)
        if holders[name] is member
    )


def doubles(team: str, spec: TeamSpec) -> Iterator[tuple[str, str, str]]:
    """Supervisors that are wanted twice: name, the member that has it, the one that has not."""
    holders = _holders(team, spec)
    for member in spec.members:
        for name in _supervisors(team, member):
            if holders[name] is not member:
                yield name, holders[name].name, member.name


def _holders(team: str, spec: TeamSpec) -> dict[str, Member]:
    """Which member has which Supervisor: who makes it before who names it, then the first."""
    found: dict[str, Member] = {}
    for member in sorted(spec.members, key=lambda member: member.ref is not None):
        for name in _supervisors(team, member):
            found.setdefault(name, member)
    return found


def leads_itself(spec: TeamSpec, wanted: tuple[Wanted, ...]) -> bool:
    """The Supervisor that shall lead the team is one of its members."""
    ref = spec.supervisor_ref
    return ref is not None and any(one.supervisor == ref.name for one in wanted)


def _supervisors(team: str, member: Member) -> list[str]:
    if member.ref:
        return [member.ref.name]
    base = f"{team}-{member.name}"
    if member.replicas is None:
        return [base]
    return [f"{base}-{number}" for number in range(1, member.replicas + 1)]


def _member_spec(spec: TeamSpec, member: Member) -> Json:
    """The member's template, its absent blocks filled with the team's defaults, whole."""
    template = member.template
    found: Json = (
        template.model_dump(by_alias=True, mode="json", exclude_none=True) if template else {}
    )
    defaults = spec.defaults
    for block in ("agent", "heartbeat", "restart"):
        default = getattr(defaults, block) if defaults else None
        if block not in found and default is not None:
            found[block] = default.model_dump(by_alias=True, mode="json", exclude_none=True)
    return found


def has_drifted(agent: AgentView, wanted: Wanted) -> bool:
    """Compared as models with defaults filled in; fields of whoever is on call do not count."""
    if wanted.spec is None:
        return False
    aim = put_back(agent, wanted)
    # Equal as text is the quick answer, right in almost every pass.
    return agent.spec != aim and _read(agent.spec) != _read(aim)


def put_back(agent: AgentView, wanted: Wanted) -> Json:
    """The spec as the template wants it, with what belongs to whoever is on call left alone."""
    kept = {field: agent.spec[field] for field in ON_CALL & agent.spec.keys()}
    return kept | (wanted.spec or {})


def _read(spec: Json) -> SupervisorSpec | None:
    """None where it is not a Supervisor's any more, whatever somebody made of it."""
    try:
        return SupervisorSpec.model_validate(spec)
    except ValidationError:
        return None


def build_supervisor(observed: TeamObserved, wanted: Wanted) -> Json:
    owner = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "SupervisorTeam",
        "name": observed.name,
        "uid": observed.uid,
        "controller": True,
    }
    labels = {
        MANAGED_BY: MANAGER,
        str(Label.TEAM): observed.name,
        str(Label.MEMBER): wanted.member,
    }
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Supervisor",
        "metadata": {
            "name": wanted.supervisor,
            "namespace": observed.namespace,
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": wanted.spec,
    }
