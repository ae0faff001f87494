"""`python -m supervisor_operator`: HTTP first, then leadership, then the work."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from supervisor_operator.clock import wall_clock
from supervisor_operator.errors import ClusterError, LeadershipLostError
from supervisor_operator.kube.client import KubeCluster, open_cluster
from supervisor_operator.kube.configuration import OWN_NAMESPACE
from supervisor_operator.leader import Election, Leader
from supervisor_operator.memory import save_memory
from supervisor_operator.preflight import PreflightError, check_cluster
from supervisor_operator.settings import Settings, version
from supervisor_operator.telemetry.http import Probes, serve
from supervisor_operator.telemetry.logging import configure
from supervisor_operator.telemetry.metrics import Metrics
from supervisor_operator.wiring import Operator

_log = logging.getLogger("supervisor_operator")


def main(argv: Sequence[str] | None = None) -> int:
    settings = Settings.from_args(sys.argv[1:] if argv is None else argv, os.environ)
    configure(settings)
    save_memory()
    try:
        return asyncio.run(_run(settings))
    except (PreflightError, ClusterError, LeadershipLostError, OSError) as error:
        _log.error("%s", error)
        return 1


async def _run(settings: Settings) -> int:
    stop = asyncio.Event()
    _listen(stop)
    metrics, probes = Metrics(version()), Probes()
    kubeconfig = str(settings.kubeconfig) if settings.kubeconfig else None

    def on_call(verb: str, plural: str, code: str, seconds: float) -> None:
        metrics.api_calls_total.labels(verb, plural, code).inc()
        metrics.api_call_seconds.labels(verb).observe(seconds)

    async with (
        serve(settings.http_host, settings.http_port, probes, metrics) as port,
        open_cluster(kubeconfig, on_call=on_call) as cluster,
    ):
        _log.info("supervisor-operator %s, probes and metrics on port %d", version(), port)
        checked = asyncio.Event()
        probes.add_readiness(
            "cluster", lambda: None if checked.is_set() else "the cluster is being looked at"
        )
        await _until(stop, check_cluster(cluster, settings))
        checked.set()
        if not stop.is_set():
            await _lead(cluster, settings, metrics, probes, stop)
    return 0


def _listen(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)


async def _lead(
    cluster: KubeCluster, settings: Settings, metrics: Metrics, probes: Probes, stop: asyncio.Event
) -> None:
    def listen() -> None:
        _listen(stop)

    if not settings.leader_elect:
        metrics.leader.set(1)
        await Operator(cluster, settings, metrics, probes).run(stop, listen=listen)
        return
    leader = Leader(cluster, _election(settings), clock=time.monotonic, wall=wall_clock)
    probes.add_note("lease", leader.describe)
    await _until(stop, leader.acquire())
    if stop.is_set():
        return
    cluster.guard = leader.check
    metrics.leader.set(1)
    holding = asyncio.create_task(leader.hold())
    holding.add_done_callback(lambda _: stop.set())
    try:
        await Operator(cluster, settings, metrics, probes).run(stop, listen=listen)
        if holding.done():
            raise LeadershipLostError("leadership is lost: ending, to start afresh as a standby")
    finally:
        holding.cancel()
        await leader.release()


def _election(settings: Settings) -> Election:
    return Election(
        namespace=settings.lease_namespace or _own_namespace(),
        name=settings.lease_name,
        identity=settings.identity,
        lease_seconds=settings.lease_seconds,
        renew_seconds=settings.renew_seconds,
        retry_seconds=settings.retry_seconds,
    )


def _own_namespace() -> str:
    try:
        return OWN_NAMESPACE.read_text().strip()
    except OSError as error:
        raise PreflightError(
            "this is no pod, so it is unknown where the lease belongs: "
            "give --lease-namespace, or --leader-elect=false for a single process"
        ) from error


async def _until(stop: asyncio.Event, coroutine: Coroutine[Any, Any, None]) -> None:
    """Await the coroutine, or give it up when `stop` is set."""
    task = asyncio.create_task(coroutine)
    waiter = asyncio.create_task(stop.wait())
    await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
    waiter.cancel()
    if not task.done():
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return
    task.result()


if __name__ == "__main__":
    sys.exit(main())
