"""`page`: the live page in a browser, signed in as you, for as long as this runs."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import shutil
import signal
import sys
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from aiohttp import web

from supervisor_cli.door import LOOPBACK, Bearer, Door
from supervisor_cli.look import AGENT
from supervisor_operator.core.health.steps import SYSTEM
from supervisor_operator.errors import ClusterError
from supervisor_operator.kube.client import KubeCluster, open_cluster
from supervisor_operator.kube.cluster import Resource
from supervisor_operator.kube.configuration import (
    authorization,
    context_namespace,
    load_configuration,
)

SERVICE, PORT = "svc/supervisor-api", 8443
FORWARDING = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+)")
TOKEN_SECONDS = 3600
OWNER_ONLY = 0o600


async def run(options: argparse.Namespace) -> int:
    async with _bearer(options) as bearer, _server(options) as server:
        door = Door(lambda: server, bearer, namespace=options.namespace or "")
        async with _open(door):
            print(f"The page is at {door.address} until you press Ctrl-C.", flush=True)
            with _way_in(door) as way:
                shown = not options.no_browser and await asyncio.to_thread(webbrowser.open, way)
                if not shown:
                    print(f"Open this link within two minutes; it works once:\n{door.link}")
                sys.stdout.flush()
                await _end()
    return 0


async def _end() -> None:
    """SIGTERM ends it well too; Ctrl-C is the caller's."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()


@asynccontextmanager
async def _bearer(options: argparse.Namespace) -> AsyncIterator[Bearer]:
    """The kubeconfig's own token, or short-lived ones of a ServiceAccount."""
    if options.account:
        namespace = options.namespace or context_namespace(options.kubeconfig, options.context)
        opened = open_cluster(options.kubeconfig, context=options.context, agent=AGENT)
        async with opened as cluster:
            tokens = _Tokens(cluster, namespace, options.account)
            await tokens.header()
            yield tokens.header
        return
    configuration = await load_configuration(options.kubeconfig, options.context)
    if not await authorization(configuration):
        raise ClusterError(
            "your kubeconfig has a certificate, no token, and the page needs one: name a"
            " ServiceAccount whose rights it shall have, with --account NAME and -n NAMESPACE"
        )
    yield lambda: authorization(configuration)


class _Tokens:
    """Asks for the next one when half of the life of this one is over."""

    def __init__(self, cluster: KubeCluster, namespace: str, account: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._resource = Resource("TokenRequest", f"serviceaccounts/{account}/token")
        self._token = ""
        self._until = 0.0

    async def header(self) -> dict[str, str]:
        now = asyncio.get_running_loop().time()
        if now >= self._until:
            body = {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "metadata": {},
                "spec": {"expirationSeconds": TOKEN_SECONDS},
            }
            made = await self._cluster.create(self._resource, self._namespace, body)
            self._token, self._until = made["status"]["token"], now + TOKEN_SECONDS / 2
        return {"Authorization": f"Bearer {self._token}"}


@asynccontextmanager
async def _server(options: argparse.Namespace) -> AsyncIterator[str]:
    """Where the management API is: as given, or through kubectl port-forward."""
    if options.server:
        yield options.server.rstrip("/")
        return
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise ClusterError(
            "kubectl is not on PATH: it is needed to reach the API, or give --server"
        )
    words = [f"--namespace={SYSTEM}", "port-forward", f"--address={LOOPBACK}", SERVICE, f":{PORT}"]
    given = {flag: getattr(options, flag) for flag in ("kubeconfig", "context")}
    words += [f"--{flag}={value}" for flag, value in given.items() if value]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(kubectl, *words, stdout=pipe, stderr=pipe)
    try:
        assert process.stdout is not None  # noqa: S101 - for the type
        found = FORWARDING.search((await process.stdout.readline()).decode())
        if not found:
            said = (await process.communicate())[1].decode().strip()
            raise ClusterError(f"the management API cannot be reached: {said}")
        yield f"http://{LOOPBACK}:{found[1]}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


@asynccontextmanager
async def _open(door: Door) -> AsyncIterator[None]:
    # Streams are open for as long as the page is: nobody waits for their end.
    runner = web.AppRunner(door.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, LOOPBACK, 0)
        await site.start()
        door.port = runner.addresses[0][1]
        yield
    finally:
        await runner.cleanup()


@contextmanager
def _way_in(door: Door) -> Iterator[str]:
    """A file that only we can read leads there: the words of a command are for all to see."""
    with tempfile.TemporaryDirectory(prefix="supervisor-") as folder:
        path = Path(folder) / "open.html"
        path.touch(mode=OWNER_ONLY)
        path.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={door.link}">')
        yield path.as_uri()
