"""`top`: all agents, the worst first."""

from __future__ import annotations

import argparse
from collections import Counter

from supervisor_cli.look import looking
from supervisor_cli.show import WORST, content_of, dump, print_table, worst_first


async def run(options: argparse.Namespace) -> int:
    async with looking(options) as look:
        found = worst_first(await look.reports())
    if options.output in {"json", "yaml"}:
        print(dump([content_of(one) for one in found], options.output))
        return 0
    count = Counter(one.level for one in found)
    print(f"{len(found)} agents: " + ", ".join(f"{count[level]} {level}" for level in WORST))
    if found:
        print_table(found, wide=options.output == "wide", namespaces=options.all_namespaces)
    return 0
