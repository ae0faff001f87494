"""`watch`: agents as they change, one line each time."""

from __future__ import annotations

import argparse
import time

from supervisor_cli.look import looking, report
from supervisor_cli.show import cells, columns, is_seen, paint
from supervisor_operator.clock import wall_clock
from supervisor_operator.core.health.report import HealthReport
from supervisor_operator.kube.cluster import SUPERVISORS, Object
from supervisor_operator.kube.reflector import Reflector
from supervisor_operator.kube.store import Store

WIDTHS = {"NAMESPACE": 20, "NAME": 28, "LEVEL": 10, "PHASE": 10, "REASON": 22, "RESTARTS": 8}


class Screen:
    """Prints what differs from what was printed before; the age of a beat is no difference."""

    def __init__(self, names: tuple[str, ...], *, namespaces: bool) -> None:
        self._names = names
        self._namespaces = namespaces
        self._shown: dict[tuple[str, str], tuple[object, ...]] = {}
        self._colour = is_seen()
        self._head = columns(wide=False, namespaces=namespaces)
        print(self._line(self._head), flush=True)

    def take(self, kind: str, item: Object) -> None:
        if self._names and item["metadata"]["name"] not in self._names:
            return
        found = report(item, {}, wall_clock())
        key = (found.namespace, found.name)
        if kind == "DELETED":
            self._shown.pop(key, None)
            print(f"{'/'.join(key) if self._namespaces else found.name} is gone", flush=True)
            return
        words = (found.level, found.phase, found.reason, found.restarts.used, found.cause)
        if self._shown.get(key) != words:
            self._shown[key] = words
            self._print(found)

    def _print(self, found: HealthReport) -> None:
        row = cells(found, wide=False, namespaces=self._namespaces)
        print(paint(found.level, self._line(row), colour=self._colour), flush=True)

    def _line(self, row: list[str]) -> str:
        pairs = zip(self._head, row, strict=True)
        return "  ".join(word.ljust(WIDTHS.get(name, 8)) for name, word in pairs).rstrip()


async def run(options: argparse.Namespace) -> int:
    async with looking(options) as look:
        screen = Screen(look.names, namespaces=options.all_namespaces)
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
