"""Who shall belong to a team: its members as single agents, in list order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    return tuple(agent for member in spec.members for agent in _agents(team, spec, member))


def leads_itself(spec: TeamSpec, wanted: tuple[Wanted, ...]) -> bool:
    """The Supervisor that shall lead the team is one of its members."""
    ref = spec.supervisor_ref
    return ref is not None and any(one.supervisor == ref.name for one in wanted)


def _agents(team: str, spec: TeamSpec, member: Member) -> list[Wanted]:
    if member.ref:
        return [Wanted(member.ref.name, member.name, member.role, member.metadata)]
    content = _member_spec(spec, member)
    base = f"{team}-{member.name}"
    names = [base]
    if member.replicas is not None:
        names = [f"{base}-{number}" for number in range(1, member.replicas + 1)]
    return [Wanted(name, member.name, member.role, member.metadata, content) for name in names]


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
    if wanted.spec is None or _is_same_text(agent.spec, wanted.spec):
        return False
    now = SupervisorSpec.model_validate(agent.spec)
    return now != _put_back(now, wanted.spec)


def _is_same_text(now: Json, wanted: Json) -> bool:
    """The quick answer, right in almost every pass; a no means only: compare with care."""
    return now.keys() - wanted.keys() <= ON_CALL and all(
        now.get(field) == value for field, value in wanted.items()
    )


def put_back(agent: AgentView, wanted: Wanted) -> Json:
    """The spec as the template wants it, with what belongs to whoever is on call left alone."""
    now = SupervisorSpec.model_validate(agent.spec)
    spec = _put_back(now, wanted.spec or {})
    return spec.model_dump(by_alias=True, mode="json", exclude_none=True)


def _put_back(now: SupervisorSpec, wanted: Json) -> SupervisorSpec:
    spec = SupervisorSpec.model_validate(wanted)
    kept = {"restart_request": now.restart_request}
    if "operatingMode" not in wanted:
        kept["operating_mode"] = now.operating_mode
    return spec.model_copy(update=kept)


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
