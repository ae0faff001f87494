"""`kopf run -m supervisor_operator.dev --standalone -A`: the operator under kopf's command line.

For development: kopf hosts the process, nobody is elected, and there is neither HTTP nor a log
format of our own. Settings come from the environment; `-n` takes SUPERVISOR_OPERATOR_NAMESPACE of
the same value, or we wait for objects that kopf never brings.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from contextlib import AsyncExitStack
from typing import Any

import kopf

from supervisor_operator.errors import SupervisorOperatorError
from supervisor_operator.handlers.hosting import quieten
from supervisor_operator.kube.client import open_cluster
from supervisor_operator.preflight import check_cluster
from supervisor_operator.settings import Settings, version
from supervisor_operator.telemetry.http import Probes
from supervisor_operator.telemetry.metrics import Metrics
from supervisor_operator.wiring import Operator

_log = logging.getLogger(__name__)


class Guest:
    """The operator in somebody else's event loop: begun and ended by calls."""

    def __init__(self) -> None:
        self._opened = AsyncExitStack()
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def begin(self, settings: Settings, registry: kopf.OperatorRegistry) -> None:
        kubeconfig = str(settings.kubeconfig) if settings.kubeconfig else None
        cluster = await self._opened.enter_async_context(open_cluster(kubeconfig))
        await check_cluster(cluster, settings)
        operator = Operator(cluster, settings, Metrics(version()), Probes())
        operator.register(registry)
        self._running = asyncio.create_task(operator.run(self._stop, hosts_kopf=False))
        self._running.add_done_callback(_end_with)

    async def end(self) -> None:
        self._stop.set()
        if self._running:
            await asyncio.wait({self._running})
        await self._opened.aclose()


def _end_with(running: asyncio.Task[None]) -> None:
    """A part that died leaves half an operator: the process goes too."""
    if not running.cancelled() and (error := running.exception()):
        _log.error("ending: %s", error)
        signal.raise_signal(signal.SIGTERM)


_guest = Guest()


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, **_: Any) -> None:
    quieten(settings)
    try:
        await _guest.begin(Settings.from_args([], os.environ), kopf.get_default_registry())
    except SupervisorOperatorError as error:
        await _guest.end()
        raise kopf.PermanentError(str(error)) from error


@kopf.on.cleanup()
async def stop(**_: Any) -> None:
    await _guest.end()
