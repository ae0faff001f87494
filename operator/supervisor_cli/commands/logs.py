"""`logs`: what an agent said, in this run or in the one before."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from supervisor_cli.look import looking
from supervisor_operator.core.template import pod_name
from supervisor_operator.errors import ConflictError, NotFoundError
from supervisor_operator.kube.cluster import Object


async def run(options: argparse.Namespace) -> int:
    async with looking(options) as look:
        item = one_of(await look.supervisors())
        namespace, pod = item["metadata"]["namespace"], pod_of(item, previous=options.previous)
        try:
            async with look.cluster.logs(namespace, pod, _query(options)) as pieces:
                async for piece in pieces:
                    sys.stdout.buffer.write(piece)
                    sys.stdout.buffer.flush()
        except NotFoundError as error:
            print_last_words(item, pod, error)
    return 0


def print_last_words(item: Object, pod: str, error: NotFoundError) -> None:
    """Of a pod that is gone the status may still have the end of what it said."""
    last = (item.get("status") or {}).get("lastTermination") or {}
    if last.get("podName") != pod or not last.get("message"):
        raise error
    print(f"pod {pod} is gone; its last words, from status.lastTermination:", file=sys.stderr)
    print(last["message"].rstrip("\n"))


def one_of(items: Sequence[Object]) -> Object:
    if len(items) == 1:
        return items[0]
    where = ", ".join(sorted(one["metadata"]["namespace"] for one in items))
    raise ConflictError(f"there are several of this name, in {where}: choose one with -n")


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
