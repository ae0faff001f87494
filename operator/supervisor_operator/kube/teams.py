"""Who belongs to which team, as the stores show it: links for agents, views for teams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from pydantic import ValidationError

from supervisor_operator.api.v1alpha1.meta import OperatingMode
from supervisor_operator.api.v1alpha1.supervisor_status import LedTeam
from supervisor_operator.api.v1alpha1.team import TeamSpec
from supervisor_operator.api.v1alpha1.team_status import TeamStatus
from supervisor_operator.core.link import TeamLink
from supervisor_operator.core.observed import PodView
from supervisor_operator.core.pods import controller_of
from supervisor_operator.core.team.members import Wanted, wanted_agents
from supervisor_operator.core.team.observed import AgentView, TeamObserved
from supervisor_operator.core.team.orders import Line, calls_for_order, link_of
from supervisor_operator.core.team.plan import line_of
from supervisor_operator.kube.agents import view_agent
from supervisor_operator.kube.cluster import Object
from supervisor_operator.kube.customs import Customs
from supervisor_operator.kube.family import Family, mode_of
from supervisor_operator.kube.specs import tell_refusal
from supervisor_operator.kube.store import Store
from supervisor_operator.queue import Key


class Teams:
    def __init__(
        self, teams: Customs, supervisors: Customs, pods: Store[PodView], family: Family
    ) -> None:
        self._teams = teams
        self._supervisors = supervisors
        self._pods = pods
        self._family = family
        self._wanted: dict[Key, tuple[Wanted, ...]] = {}
        self._claims: defaultdict[Key, set[str]] = defaultdict(set)
        self._leads: defaultdict[Key, set[str]] = defaultdict(set)
        self._specs: dict[Key, tuple[str, int, TeamSpec, str]] = {}
        self._views: dict[Key, tuple[Object, tuple[PodView, ...], OperatingMode, AgentView]] = {}

    def note(self, key: Key) -> tuple[set[Key], set[Key]]:
        """Take a change of a team; tells whose roll-up it concerns, and who may have to obey it."""
        leads, members = self._forget(key)
        item = self._teams.get(key)
        if item is None:
            return leads, members
        spec, _ = self._spec(key, item)
        self._wanted[key] = wanted_agents(key[1], spec)
        for lead in _leads(key, spec):
            self._leads[lead].add(key[1])
        for member in self._members(key):
            self._claims[member].add(key[1])
        return leads | _leads(key, spec), members | self._members(key)

    def is_gone(self, key: Key) -> bool:
        return self._teams.get(key) is None

    def is_left_over(self, item: Object) -> bool:
        """Its team is gone or going: the garbage collector takes it along, or lets it go."""
        owner = self._owner_reference(item)
        team = self._referred(item["metadata"]["namespace"], owner)
        return owner is not None and (team is None or "deletionTimestamp" in team["metadata"])

    def teams_of(self, supervisor: Key) -> set[Key]:
        """Teams that name or own the Supervisor, or that it leads."""
        names = self._claims.get(supervisor, set()) | self._leads.get(supervisor, set())
        item = self._supervisors.get(supervisor)
        owner = self._owner(supervisor[0], item) if item else None
        return {(supervisor[0], name) for name in names | ({owner} if owner else set())}

    def mates(self, supervisor: Key, now: datetime) -> set[Key]:
        """Members whose next step may depend on this one's, while something is under way."""
        found: set[Key] = set()
        for key in self.teams_of(supervisor):
            line = self._line(key, now)
            if line is None:
                continue
            next_one = [line.next_in_turn] if line.next_in_turn else []
            waiting = [agent for agent in line.agents if agent.backing_off]
            found |= {(key[0], agent.name) for agent in (*next_one, *waiting)}
        return found - {supervisor}

    def calls(self, supervisor: Key, now: datetime) -> bool:
        """Whether a failure of this Supervisor waits for an order that is not given yet."""
        item = self._supervisors.get(supervisor)
        me = self._agent(supervisor, item) if item else None
        if me is None or not me.waiting:
            return False
        lines = (self._line(key, now) for key in self.teams_of(supervisor))
        return any(me in line.agents and calls_for_order(me, line) for line in lines if line)

    def link(self, item: Object, now: datetime) -> TeamLink | None:
        """What its team asks of this Supervisor."""
        metadata = item["metadata"]
        supervisor = (metadata["namespace"], metadata["name"])
        team = self._team_of(supervisor, item)
        line = self._line((supervisor[0], team), now) if team else None
        if team is None or line is None:
            return None
        wanted = self._wanted.get((supervisor[0], team), ())
        mine = next((one for one in wanted if one.supervisor == supervisor[1]), None)
        if mine is None:
            return None
        return link_of(line, supervisor[1], team=team, member=mine.member, role=mine.role)

    def led_by(self, supervisor: Key) -> tuple[LedTeam, ...]:
        names = sorted(self._leads.get(supervisor, ()))
        items = (self._teams.get((supervisor[0], name)) for name in names)
        return tuple(_led(item) for item in items if item)

    def observe(self, key: Key, item: Object) -> TeamObserved:
        metadata = item["metadata"]
        spec, invalid = self._spec(key, item)
        wanted = self._wanted.get(key) or wanted_agents(key[1], spec)
        owned = {name for _, name in self._supervisors.owned_by(metadata["uid"])}
        names = owned | {one.supervisor for one in wanted}
        ref = spec.supervisor_ref
        return TeamObserved(
            name=key[1],
            namespace=key[0],
            uid=metadata["uid"],
            generation=metadata.get("generation", 0),
            spec=spec,
            status=_status(item),
            agents=self._agents(key[0], names),
            held_by_others=self._held_by_others(key, wanted),
            supervisor_there=ref is None or self._supervisors.get((key[0], ref.name)) is not None,
            invalid=invalid,
        )

    def _line(self, key: Key, now: datetime) -> Line | None:
        item = self._teams.get(key)
        if item is None or "deletionTimestamp" in item["metadata"]:
            return None
        observed = self.observe(key, item)
        return line_of(observed, self._wanted.get(key, ()), now)

    def _spec(self, key: Key, item: Object) -> tuple[TeamSpec, str]:
        """Parsed once per generation; one that cannot be read keeps the last that could."""
        uid, generation = item["metadata"]["uid"], item["metadata"].get("generation", 0)
        known = self._specs.get(key)
        if known and known[:2] == (uid, generation):
            return known[2], known[3]
        try:
            spec, invalid = TeamSpec.model_validate(item["spec"]), ""
        except ValidationError as error:
            spec = known[2] if known and known[0] == uid else TeamSpec()
            invalid = tell_refusal(error)
        self._specs[key] = (uid, generation, spec, invalid)
        return spec, invalid

    def _forget(self, key: Key) -> tuple[set[Key], set[Key]]:
        """Tells who led it, and who was in it."""
        known = self._specs.get(key)
        leads, members = _leads(key, known[2]) if known else set(), self._members(key)
        for lead in leads:
            _discard(self._leads, lead, key[1])
        for member in members:
            _discard(self._claims, member, key[1])
        self._wanted.pop(key, None)
        if self._teams.get(key) is None:
            self._specs.pop(key, None)
        return leads, members

    def _members(self, key: Key) -> set[Key]:
        return {(key[0], one.supervisor) for one in self._wanted.get(key, ())}

    def _owner(self, namespace: str, item: Object) -> str | None:
        team = self._referred(namespace, self._owner_reference(item))
        return str(team["metadata"]["name"]) if team else None

    def _referred(self, namespace: str, owner: Object | None) -> Object | None:
        """The very team that an ownerReference means, if it is there."""
        team = self._teams.get((namespace, owner["name"])) if owner else None
        return team if team and owner and team["metadata"]["uid"] == owner["uid"] else None

    def _owner_reference(self, item: Object) -> Object | None:
        uid, kind = controller_of(item), self._teams.resource.kind
        owners = item["metadata"].get("ownerReferences") or ()
        return next((one for one in owners if one["uid"] == uid and one["kind"] == kind), None)

    def _team_of(self, supervisor: Key, item: Object) -> str | None:
        """Its owner; else, of the teams that name it, the one it belonged to before, or longest."""
        owner = self._owner(supervisor[0], item)
        if owner:
            return owner
        claims = {
            team for team in self._claims.get(supervisor, ()) if self._refers(team, supervisor)
        }
        before = (item["status"].get("memberOf") or {}).get("team")
        if before in claims:
            return str(before)
        return min(claims, key=lambda team: self._seniority(supervisor, team), default=None)

    def _refers(self, team: str, supervisor: Key) -> bool:
        """By ref; a Supervisor that only has the name of a member to be made is a stranger."""
        wanted = self._wanted.get((supervisor[0], team), ())
        return any(one.supervisor == supervisor[1] and one.spec is None for one in wanted)

    def _seniority(self, supervisor: Key, team: str) -> tuple[str, str, str]:
        item = self._teams.get((supervisor[0], team)) or {"metadata": {}, "status": {}}
        stays = item["status"].get("members") or ()
        joined = [
            stay.get("joinedAt") or "~"
            for stay in stays
            if stay["supervisor"] == supervisor[1] and not stay.get("leftAt")
        ]
        return min(joined, default="~"), item["metadata"].get("creationTimestamp", ""), team

    def _held_by_others(self, key: Key, wanted: Iterable[Wanted]) -> dict[str, str]:
        held = {}
        for name in (one.supervisor for one in wanted if one.spec is None):
            item = self._supervisors.get((key[0], name))
            team = self._team_of((key[0], name), item) if item else None
            if team is not None and team != key[1]:
                held[name] = team
        return held

    def _agents(self, namespace: str, names: Iterable[str]) -> dict[str, AgentView]:
        items = ((name, self._supervisors.get((namespace, name))) for name in names)
        return {name: self._agent((namespace, name), item) for name, item in items if item}

    def _agent(self, key: Key, item: Object) -> AgentView:
        """Made anew only where what it is made of changed: each of n members looks at n."""
        pods = self._pods.of(item["metadata"]["uid"])
        mode = self._family.mode(key, mode_of(item))
        known = self._views.get(key)
        if known and known[0] is item and known[1:3] == (pods, mode):
            return known[3]
        view = view_agent(item, pods, mode)
        self._views[key] = (item, pods, mode, view)
        return view

    def forget(self, supervisor: Key) -> None:
        self._views.pop(supervisor, None)


def _status(item: Object) -> TeamStatus:
    try:
        return TeamStatus.model_validate(item["status"])
    except ValidationError:
        return TeamStatus()


def _led(item: Object) -> LedTeam:
    status = item["status"]
    present = [stay for stay in status.get("members") or () if not stay.get("leftAt")]
    return LedTeam(
        id=item["metadata"]["uid"],
        name=item["metadata"]["name"],
        objective=item["spec"].get("objective"),
        members=len(present),
        active=sum(stay.get("phase") == "ACTIVE" for stay in present),
    )


def _leads(team: Key, spec: TeamSpec) -> set[Key]:
    return {(team[0], spec.supervisor_ref.name)} if spec.supervisor_ref else set()


def _discard(index: defaultdict[Key, set[str]], key: Key, name: str) -> None:
    index[key].discard(name)
    if not index[key]:
        del index[key]
