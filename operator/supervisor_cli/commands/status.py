"""`status`: how agents are, why, and what to do now."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from supervisor_cli.look import looking
from supervisor_cli.show import content_of, dump, is_seen, paragraph, print_table, worst_first
from supervisor_operator.core.health.report import HealthReport, Level
from supervisor_operator.errors import NotFoundError

HEALTHY, NOT_HEALTHY, UNKNOWN = 0, 1, 2


async def run(options: argparse.Namespace) -> int:
    async with looking(options) as look:
        found = worst_first(await look.reports())
    if not found:
        raise NotFoundError(f"there is no Supervisor in {look.where}", status=404)
    _print(found, options)
    return code_of(found)


def code_of(reports: Iterable[HealthReport]) -> int:
    levels = {one.level for one in reports}
    if levels & {Level.UNHEALTHY, Level.DEGRADED}:
        return NOT_HEALTHY
    return UNKNOWN if Level.UNKNOWN in levels else HEALTHY


def _print(found: list[HealthReport], options: argparse.Namespace) -> None:
    if options.output in {"json", "yaml"}:
        contents = [content_of(one) for one in found]
        is_one = len(options.names) == 1 and len(found) == 1
        print(dump(contents[0] if is_one else contents, options.output))
    elif options.names:
        print("\n\n".join(paragraph(one, colour=is_seen()) for one in found))
    else:
        wide = options.output == "wide"
        print_table(found, wide=wide, namespaces=options.all_namespaces)
