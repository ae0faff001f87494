"""`start`, `stop`, `pause`, `resume`, `restart`: changes of spec, asked twice is asked once."""

from __future__ import annotations

import argparse
import sys

from supervisor_cli.look import Look, looking
from supervisor_operator.clock import wall_clock
from supervisor_operator.core.steer import Order, patch_for
from supervisor_operator.errors import ClusterError
from supervisor_operator.kube.cluster import SUPERVISORS, Object

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
        done = [await _steer(look, order, item) for item in await look.supervisors()]
    if not done:
        print(f"error: no Supervisor has the labels {options.selector}", file=sys.stderr)
    return 0 if done and all(done) else 1


async def _steer(look: Look, order: Order, item: Object) -> bool:
    """Whether it was taken; one that is refused keeps nobody from ordering the others."""
    metadata = item["metadata"]
    run_number = (item.get("status") or {}).get("run") or 0
    patch = patch_for(order, run_number, wall_clock()) | {"metadata": {"uid": metadata["uid"]}}
    try:
        changed = await look.cluster.merge(
            SUPERVISORS, metadata["namespace"], metadata["name"], patch, strict=True
        )
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return False
    is_news = changed["metadata"]["resourceVersion"] != metadata["resourceVersion"]
    words = WORDS[order] if is_news else f"{WORDS[order]} already"
    print(f"supervisor {metadata['namespace']}/{metadata['name']} {words}")
    return True
