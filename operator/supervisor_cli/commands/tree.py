"""`tree`: who is above whom, teams included."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from supervisor_cli.look import Look, looking, report
from supervisor_cli.show import dump, is_seen, paint
from supervisor_operator.api.v1alpha1.team_status import TeamStatus
from supervisor_operator.clock import wall_clock
from supervisor_operator.core.health.level import team_level
from supervisor_operator.core.health.report import HealthReport, Level
from supervisor_operator.kube.cluster import TEAMS, Object

Key = tuple[str, str, str]
"""Kind, namespace and name."""


@dataclass(slots=True)
class Node:
    kind: str
    namespace: str
    name: str
    level: Level
    text: str
    above: Key | None
    below: list[Node] = field(default_factory=list)

    @property
    def key(self) -> Key:
        return self.kind, self.namespace, self.name

    @property
    def content(self) -> dict[str, Any]:
        below = [one.content for one in self.below]
        found = {"kind": self.kind, "namespace": self.namespace, "name": self.name}
        return found | {"level": str(self.level), "cause": self.text, "below": below}


async def run(options: argparse.Namespace) -> int:
    async with looking(options) as look:
        nodes = [*await _agents(look), *await _teams(look)]
    roots = grow(nodes)
    if options.output in {"json", "yaml"}:
        print(dump([one.content for one in roots], options.output))
        return 0
    if not roots:
        print(f"no agents in {look.where}", file=sys.stderr)
    for root in roots:
        for line in draw(root, namespaces=options.all_namespaces, colour=is_seen()):
            print(line)
    return 0


def grow(nodes: list[Node]) -> list[Node]:
    """Hang each node below the one above; whose is not here, or is below it, is a root."""
    known = {node.key: node for node in nodes}
    roots = []
    for node in sorted(nodes, key=lambda one: one.key[1:] + one.key[:1]):
        above = known.get(node.above) if node.above else None
        if above is None or _leads_to(above, node, known):
            roots.append(node)
        else:
            above.below.append(node)
    return roots


def _leads_to(node: Node, end: Node, known: dict[Key, Node]) -> bool:
    seen: set[Key] = set()
    current: Node | None = node
    while current and current.key not in seen:
        if current.key == end.key:
            return True
        seen.add(current.key)
        current = known.get(current.above) if current.above else None
    return False


def draw(
    node: Node, *, namespaces: bool, colour: bool, stem: str = "", fork: str = ""
) -> Iterator[str]:
    name = f"{node.namespace}/{node.name}" if namespaces and not fork else node.name
    title = f"team {name}" if node.kind == TEAMS.kind else name
    line = f"{title}  {node.level}  {node.text}"
    yield stem + fork + paint(node.level, line, colour=colour)
    under = stem + {"": "", "├─ ": "│  ", "└─ ": "   "}[fork]
    for number, child in enumerate(node.below, 1):
        branch = "└─ " if number == len(node.below) else "├─ "
        yield from draw(child, namespaces=namespaces, colour=colour, stem=under, fork=branch)


async def _agents(look: Look) -> list[Node]:
    beats, now = await look.beats(), wall_clock()
    return [_agent(item, report(item, beats, now)) for item in await look.supervisors()]


def _agent(item: Object, found: HealthReport) -> Node:
    namespace = found.namespace
    parent = (item["spec"].get("parentRef") or {}).get("name")
    team = ((item.get("status") or {}).get("memberOf") or {}).get("team")
    above = ("Supervisor", namespace, parent) if parent else None
    if team:
        above = (TEAMS.kind, namespace, team)
    words = f"{found.phase or '-'}, {found.reason}"
    return Node("Supervisor", namespace, found.name, found.level, words, above)


async def _teams(look: Look) -> list[Node]:
    if look.names or look.selector:
        return []
    return [_team(item) for item in (await look.cluster.list(TEAMS, look.namespace)).items]


def _team(item: Object) -> Node:
    metadata, status = item["metadata"], TeamStatus.model_validate(item.get("status") or {})
    leader = (item["spec"].get("supervisorRef") or {}).get("name")
    above = ("Supervisor", metadata["namespace"], leader) if leader else None
    level = team_level(status, metadata["generation"])
    words = f"{status.phase or '-'}, {status.ready_summary or '0/0'} ready"
    if objective := item["spec"].get("objective"):
        words += f": {objective}"
    return Node(TEAMS.kind, metadata["namespace"], metadata["name"], level, words, above)
