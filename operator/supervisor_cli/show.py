"""How things look in a terminal: tables, times, colours only where somebody sees them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from supervisor_operator.core.health.report import HealthReport, Level
from supervisor_operator.core.telling import spell

COLOURS = {Level.HEALTHY: 32, Level.DEGRADED: 33, Level.UNHEALTHY: 31, Level.UNKNOWN: 36}
WORST = (Level.UNHEALTHY, Level.DEGRADED, Level.UNKNOWN, Level.HEALTHY)
GAP = "   "


def is_seen() -> bool:
    """Whether a person looks at it, and wants colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def paint(level: Level, text: str, *, colour: bool) -> str:
    return f"\x1b[{COLOURS[level]}m{text}\x1b[0m" if colour else text


def dump(content: object, form: str) -> str:
    if form == "json":
        return json.dumps(content, indent=2)
    import yaml  # noqa: PLC0415 - takes time that other formats need not

    return str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True)).rstrip()


def content_of(report: HealthReport) -> dict[str, Any]:
    return report.model_dump(by_alias=True, mode="json", exclude_none=True)


def worst_first(reports: Iterable[HealthReport]) -> list[HealthReport]:
    def rank(one: HealthReport) -> tuple[int, int, int, str, str]:
        silent = one.heartbeat.missed - one.heartbeat.allowed
        return WORST.index(one.level), one.restarts.left, -silent, one.namespace, one.name

    return sorted(reports, key=rank)


def columns(*, wide: bool, namespaces: bool) -> list[str]:
    head = ["NAMESPACE"] if namespaces else []
    head += ["NAME", "LEVEL", "PHASE", "REASON", "RESTARTS", "BEAT", "MISSED"]
    return head + (["MODE", "POD", "NODE", "CAUSE"] if wide else [])


def cells(one: HealthReport, *, wide: bool, namespaces: bool) -> list[str]:
    beat, restarts = one.heartbeat, one.restarts
    head = [one.namespace] if namespaces else []
    head += [
        one.name,
        one.level,
        one.phase or "-",
        one.reason or "-",
        f"{restarts.used}/{restarts.used + restarts.left}",
        age(beat.age_seconds),
        f"{beat.missed}/{beat.allowed}" if beat.interval_seconds else "-",
    ]
    return head + ([one.mode, one.pod or "-", one.node or "-", one.cause] if wide else [])


def age(seconds: int | None) -> str:
    return "-" if seconds is None else spell(seconds).replace(" ", "")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    return [
        GAP.join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def print_table(reports: Sequence[HealthReport], *, wide: bool, namespaces: bool) -> None:
    rows = [cells(one, wide=wide, namespaces=namespaces) for one in reports]
    head, *lines = table(columns(wide=wide, namespaces=namespaces), rows)
    print(head)
    for one, line in zip(reports, lines, strict=True):
        print(paint(one.level, line, colour=is_seen()))


def paragraph(one: HealthReport, *, colour: bool) -> str:
    """All about one agent, for whoever is on call."""
    beat, restarts = one.heartbeat, one.restarts
    facts = [
        ("Cause", one.cause),
        ("Next", one.next_step),
        *(("", f"$ {command}") for command in one.commands),
        ("Phase", f"{one.phase or '-'}, health {one.health or '-'}, mode {one.mode}"),
        ("Heartbeat", _beat(one)),
        ("Restarts", f"{restarts.used} used, {restarts.left} left, {restarts.total} in all"),
    ]
    if beat.problem:
        facts.insert(-1, ("", f"the relay says: {beat.problem}"))
    if one.pod:
        facts.append(("Pod", one.pod + (f" on {one.node}" if one.node else "")))
    said = ", ".join(f"{c.type}={c.status}" for c in one.conditions)
    facts.append(("Conditions", said or "none yet"))
    title = f"{one.namespace}/{one.name}  {one.level}  {one.reason}"
    lines = [f"  {name:<10}  {text}" for name, text in facts]
    return "\n".join([paint(one.level, title, colour=colour), *lines])


def _beat(one: HealthReport) -> str:
    beat = one.heartbeat
    if not beat.interval_seconds:
        return "none expected"
    if beat.age_seconds is None:
        return f"none yet, one every {beat.interval_seconds} s expected"
    return f"{spell(beat.age_seconds)} ago, {beat.missed} missed, {beat.allowed} allowed"
