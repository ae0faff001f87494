"""`watch`: agents as they change, one line each time."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from supervisor_cli.look import looking, report
from supervisor_cli.show import cells, columns, content_of, dump, is_seen, paint
from supervisor_operator.clock import wall_clock
from supervisor_operator.core.health.report import HealthReport
from supervisor_operator.kube.cluster import SUPERVISORS, Object
from supervisor_operator.kube.reflector import Reflector
from supervisor_operator.kube.store import Store

WIDTHS = {
    "NAMESPACE": 20,
    "NAME": 28,
    "LEVEL": 10,
    "PHASE": 10,
    "REASON": 22,
    "POD": 30,
    "NODE": 16,
}


class Screen:
    """Prints what differs from what was printed before; the age of a beat is no difference."""

    def __init__(self, names: tuple[str, ...], output: str | None, *, namespaces: bool) -> None:
        self._names = names
        self._output = output
        self._wide = output == "wide"
        self._namespaces = namespaces
        self._shown: dict[tuple[str, str], tuple[object, ...]] = {}
        self._colour = is_seen()
        self._head = columns(wide=self._wide, namespaces=namespaces)
        if output in {None, "wide"}:
            print(self._line(self._head), flush=True)

    def take(self, kind: str, item: Object) -> None:
        if self._names and item["metadata"]["name"] not in self._names:
            return
        found = report(item, {}, wall_clock())
        key = (found.namespace, found.name)
        if kind == "DELETED":
            self._shown.pop(key, None)
            self._print_gone(found)
            return
        words = (found.level, found.phase, found.reason, found.restarts.used, found.cause)
        if self._shown.get(key) != words:
            self._shown[key] = words
            self._print(found)

    def _print_gone(self, found: HealthReport) -> None:
        if self._output in {"json", "yaml"}:
            self._dump({"namespace": found.namespace, "name": found.name, "gone": True})
            return
        where = f"{found.namespace}/" if self._namespaces else ""
        print(f"{where}{found.name} is gone", flush=True)

    def _print(self, found: HealthReport) -> None:
        if self._output in {"json", "yaml"}:
            self._dump(content_of(found))
            return
        row = cells(found, wide=self._wide, namespaces=self._namespaces)
        print(paint(found.level, self._line(row), colour=self._colour), flush=True)

    def _dump(self, content: dict[str, Any]) -> None:
        """A document per change: a line of JSON, or YAML after three dashes."""
        is_json = self._output == "json"
        print(json.dumps(content) if is_json else f"---\n{dump(content, 'yaml')}", flush=True)

    def _line(self, row: list[str]) -> str:
        pairs = zip(self._head, row, strict=True)
        return "  ".join(word.ljust(WIDTHS.get(name, 8)) for name, word in pairs).rstrip()


async def run(options: argparse.Namespace) -> int:
    async with looking(options) as look:
        screen = Screen(look.names, options.output, namespaces=options.all_namespaces)
        store: Store[None] = Store(lambda _: None, lambda _: "")
        await Reflector(
            look.cluster,
            SUPERVISORS,
            store,
            namespace=look.namespace,
            selector=look.selector,
            on_change=screen.take,
            clock=time.monotonic,
        ).run()
    return 0
