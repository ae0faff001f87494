"""The HTTP side of the process: probes for the kubelet, metrics for Prometheus.

It is served by aiohttp, which kopf and kubernetes.aio bring along anyway, on the event loop that
does the work: a loop that hangs fails its liveness probe by not answering.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from supervisor_operator.telemetry.metrics import CONTENT_TYPE, Metrics

Check = Callable[[], str | None]
"""None when well, else one sentence that says why not."""

_SHUTDOWN_SECONDS = 1.0


class Probes:
    """Named checks; the process is alive, or ready, while each of them is well."""

    def __init__(self) -> None:
        self._liveness: dict[str, Check] = {}
        self._readiness: dict[str, Check] = {}
        self._notes: dict[str, Callable[[], str]] = {}

    def add_liveness(self, name: str, check: Check) -> None:
        self._liveness[name] = check

    def add_readiness(self, name: str, check: Check) -> None:
        self._readiness[name] = check

    def add_note(self, name: str, tell: Callable[[], str]) -> None:
        """What is neither well nor unwell, told to who asks with ?verbose."""
        self._notes[name] = tell

    def notes(self) -> dict[str, str]:
        return {name: tell() for name, tell in self._notes.items()}

    def liveness(self) -> dict[str, str | None]:
        return {name: _ask(check) for name, check in self._liveness.items()}

    def readiness(self) -> dict[str, str | None]:
        return {name: _ask(check) for name, check in self._readiness.items()}


def _ask(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a broken check is an answer too: not well
        return f"the check itself failed: {error!r}"


@asynccontextmanager
async def serve(host: str, port: int, probes: Probes, metrics: Metrics) -> AsyncIterator[int]:
    """Serve until the context ends; gives the port, which matters where 0 was asked for."""
    app = web.Application()
    app.router.add_get("/healthz", _endpoint(probes.liveness, probes.notes))
    app.router.add_get("/readyz", _endpoint(probes.readiness, probes.notes))
    app.router.add_get("/metrics", _metrics(metrics))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


Handler = Callable[[web.Request], Awaitable[web.Response]]


def _endpoint(
    ask: Callable[[], Mapping[str, str | None]], tell: Callable[[], Mapping[str, str]]
) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        found = ask()
        unwell = {name: why for name, why in found.items() if why}
        shown = {**found, **tell()} if "verbose" in request.query else unwell
        lines = [f"{name}: {why or 'ok'}" for name, why in shown.items()]
        return web.Response(text="\n".join(lines) or "ok", status=503 if unwell else 200)

    return answer


def _metrics(metrics: Metrics) -> Handler:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=metrics.render(), headers={"Content-Type": CONTENT_TYPE})

    return answer
