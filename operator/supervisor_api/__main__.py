"""`python -m supervisor_api`: fill the index, then answer."""

from __future__ import annotations

import asyncio
import logging
import resource
import secrets
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager

import uvicorn
from typing_extensions import override

from supervisor_api.access import Access
from supervisor_api.app import create_app
from supervisor_api.feed import Feed
from supervisor_api.index import Index
from supervisor_api.limits import Rate
from supervisor_api.patience import PatientProtocol
from supervisor_api.service import Service
from supervisor_api.settings import PROGRAM, Settings, read_settings
from supervisor_operator.clock import wall_clock
from supervisor_operator.errors import ClusterError
from supervisor_operator.kube.client import KubeCluster, open_cluster
from supervisor_operator.settings import Settings as OperatorSettings
from supervisor_operator.settings import version
from supervisor_operator.telemetry.logging import configure

SHUTDOWN_SECONDS = 5
HEADER_BYTES = 64 * 1024

_log = logging.getLogger("supervisor_api")


def main(argv: Sequence[str] | None = None) -> int:
    settings = read_settings(sys.argv[1:] if argv is None else argv)
    configure(OperatorSettings(log_format=settings.log_format, log_level=settings.log_level))
    _allow_many_connections()
    try:
        return asyncio.run(_run(settings))
    except (ClusterError, OSError) as error:
        _log.error("%s", error)
        return 1


def _allow_many_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = 2 * PatientProtocol.most
    if resource.RLIM_INFINITY != soft < enough:
        most = enough if hard == resource.RLIM_INFINITY else min(enough, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


async def _run(settings: Settings) -> int:
    kubeconfig = str(settings.kubeconfig) if settings.kubeconfig else None
    async with (
        open_cluster(kubeconfig, agent=PROGRAM) as cluster,
        aclosing(cluster.for_strangers()) as strangers,
    ):
        service = make_service(settings, cluster, strangers)
        filling = asyncio.create_task(service.index.run())
        try:
            return await _serve(settings, service, filling)
        finally:
            filling.cancel()
            await asyncio.gather(filling, return_exceptions=True)


def make_service(settings: Settings, cluster: KubeCluster, strangers: KubeCluster) -> Service:
    feed = Feed(secrets.token_hex(4))
    index = Index(cluster, feed, settings.namespaces, clock=time.monotonic, wall=wall_clock)
    return Service(
        settings=settings,
        index=index,
        access=Access(strangers, time.monotonic),
        rate=Rate(settings.requests_per_second, settings.burst, time.monotonic),
        newcomers=Rate(
            settings.new_tokens_per_second,
            settings.burst,
            time.monotonic,
            what="new tokens per second from one address",
        ),
        wall=wall_clock,
    )


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.create_server((host, port), family=family, backlog=1024)
    # asyncio sets it only where the socket names its protocol. Without it a short answer waits
    # 40 ms for the reader's word that its head has come.
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


async def _serve(settings: Settings, service: Service, filling: asyncio.Task[None]) -> int:
    """Until it is told to end, or the index ends, which it never should: then start anew."""
    listening = listen(settings.host, settings.port)
    scheme = "https" if settings.tls_cert else "http"
    port = listening.getsockname()[1]
    _log.info("%s %s on %s://%s:%d", PROGRAM, version(), scheme, settings.host, port)
    config = uvicorn.Config(
        create_app(service),
        http=PatientProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        h11_max_incomplete_event_size=HEADER_BYTES,
        ssl_certfile=str(settings.tls_cert) if settings.tls_cert else None,
        ssl_keyfile=str(settings.tls_key) if settings.tls_key else None,
    )
    server = _Server(config, service.index.feed)
    filling.add_done_callback(lambda _: server.end())
    await server.serve(sockets=[listening])
    if filling.done():
        _log.error("the index ended", exc_info=filling.exception())
        return 1
    return 0


class _Server(uvicorn.Server):
    """Ends open streams first, which would hold up all others; a wanted end is a good one."""

    def __init__(self, config: uvicorn.Config, feed: Feed) -> None:
        super().__init__(config)
        self._feed = feed

    @override
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Uvicorn's own would raise the signal again, and the process end as if it was killed."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._obey, number)
        yield

    def _obey(self, number: signal.Signals) -> None:
        _log.info("ending after %s", number.name)
        self.end()

    def end(self) -> None:
        self._feed.close()
        self.should_exit = True


if __name__ == "__main__":
    sys.exit(main())
