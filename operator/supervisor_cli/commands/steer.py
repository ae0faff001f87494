"""`start`, `stop`, `pause`, `resume`, `restart`: changes of spec, asked twice is asked once."""

from __future__ import annotations

import argparse
import sys

from supervisor_cli.look import looking
from supervisor_operator.clock import wall_clock
from supervisor_operator.core.steer import Order, patch_for
from supervisor_operator.kube.cluster import SUPERVISORS

WORDS = {
    Order.START: "started",
    Order.STOP: "stopped",
    Order.PAUSE: "paused",
    Order.RESUME: "resumed",
    Order.RESTART: "restart asked for",
}


async def run(options: argparse.Namespace) -> int:
    order = Order(options.command)
    if not options.names and not options.selector:
        print(f"error: name the agents to {order}, or choose them with -l", file=sys.stderr)
        return 2
    async with looking(options) as look:
        for item in await look.supervisors():
            metadata = item["metadata"]
            run_number = (item.get("status") or {}).get("run") or 0
            patch = patch_for(order, run_number, wall_clock())
            patch["metadata"] = {"uid": metadata["uid"]}
            await look.cluster.merge(
                SUPERVISORS, metadata["namespace"], metadata["name"], patch, strict=True
            )
            print(f"supervisor {metadata['namespace']}/{metadata['name']} {WORDS[order]}")
    return 0
