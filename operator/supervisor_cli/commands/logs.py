"""`logs`: what an agent said, in this run or in the one before."""

from __future__ import annotations

import argparse
import sys

from supervisor_cli.look import looking
from supervisor_operator.core.template import pod_name
from supervisor_operator.errors import NotFoundError
from supervisor_operator.kube.cluster import SUPERVISORS, Object


async def run(options: argparse.Namespace) -> int:
    async with looking(options) as look:
        namespace = look.namespace or "default"
        item = await look.cluster.get(SUPERVISORS, namespace, options.name)
        pod = pod_of(item, previous=options.previous)
        async with look.cluster.logs(namespace, pod, _query(options)) as pieces:
            async for piece in pieces:
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
    return 0


def pod_of(item: Object, *, previous: bool) -> str:
    name, status = item["metadata"]["name"], item.get("status") or {}
    run = status.get("run") or 0
    if previous:
        if run <= 1:
            raise NotFoundError(f"{name} has no run before this one", status=404)
        return pod_name(name, run - 1)
    if not status.get("podName"):
        last = (status.get("lastTermination") or {}).get("podName")
        if last:
            return str(last)
        raise NotFoundError(f"{name} has no pod: kubectl supervisor status {name}", status=404)
    return str(status["podName"])


def _query(options: argparse.Namespace) -> dict[str, str]:
    found = {"container": options.container, "tailLines": options.tail}
    query = {key: str(value) for key, value in found.items() if value is not None}
    return query | ({"follow": "true"} if options.follow else {})
