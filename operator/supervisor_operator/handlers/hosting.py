"""kopf as a part of our process: its settings, its login by our own configuration, its run."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

import kopf
from kopf._cogs.clients.errors import APIError  # its only name
from typing_extensions import override

from supervisor_operator.errors import cluster_error
from supervisor_operator.kube.configuration import authorization, load_configuration

WATCH_SECONDS = 300
EXIT_SECONDS = 0.5
PAGE = 250
IDLE_SECONDS = 0.05


class NoDiffBase(kopf.DiffBaseStorage):
    """Our handlers never ask what changed: copying and comparing was half of an event's cost."""

    @override
    def build(self, **_: Any) -> kopf.BodyEssence:
        return cast("kopf.BodyEssence", {})

    @override
    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None

    @override
    def store(self, **_: Any) -> None:
        pass


class NoProgress(kopf.ProgressStorage):
    """Handlers of raw events have no progress to keep."""

    @override
    def fetch(self, **_: Any) -> None:
        return None

    @override
    def store(self, **_: Any) -> None:
        pass

    @override
    def purge(self, **_: Any) -> None:
        pass

    @override
    def touch(self, **_: Any) -> None:
        pass

    @override
    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence


class WordsOnly(logging.Filter):
    """What the API server answered says it all; the frames that it came through add nothing."""

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], APIError):
            record.exc_info = None
        return True


WORDS_ONLY = WordsOnly()
TELLERS = ("kopf._core.reactor.orchestration", "kopf._core.reactor.running")
"""The parts of kopf that log the failure of others, one after the other."""


def quieten(settings: kopf.OperatorSettings) -> None:
    """No Events, no annotations, no finalizers, no watching of CRDs and namespaces.

    Lists come in pages, and an object's task ends soon, so that a start with many objects does
    not hold all of them at once.
    """
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.persistence.progress_storage = NoProgress()
    settings.watching.chunk_size = PAGE
    settings.queueing.idle_timeout = IDLE_SECONDS
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.server_timeout = WATCH_SECONDS
    settings.watching.client_timeout = WATCH_SECONDS + 10
    settings.queueing.exit_timeout = EXIT_SECONDS
    settings.background.instant_exit_timeout = 0.1
    for name in TELLERS:
        logging.getLogger(name).addFilter(WORDS_ONLY)


def register_login(registry: kopf.OperatorRegistry, kubeconfig: str | None) -> None:
    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.ConnectionInfo:
        found: Any = await load_configuration(kubeconfig)
        bearer = (await authorization(found)).get("Authorization", "")
        return kopf.ConnectionInfo(
            server=found.host,
            ca_path=found.ssl_ca_cert,
            insecure=not found.verify_ssl,
            certificate_path=found.cert_file,
            private_key_path=found.key_file,
            token=bearer.rpartition(" ")[2] or None,
        )


async def host(
    registry: kopf.OperatorRegistry,
    namespaces: tuple[str, ...],
    stop: asyncio.Event,
    ready: asyncio.Event,
) -> None:
    """Run kopf until `stop` is set; once `ready` it has taken SIGTERM and SIGINT for itself."""
    settings = kopf.OperatorSettings()
    quieten(settings)
    try:
        await kopf.operator(
            registry=registry,
            settings=settings,
            standalone=True,
            clusterwide=not namespaces,
            namespaces=namespaces,
            stop_flag=stop,
            ready_flag=ready,
        )
    except APIError as error:
        # kopf has tried for about a minute; a fresh start waits for whatever is missing.
        message = f"the custom objects cannot be watched: {error.message or error}: starting afresh"
        raise cluster_error(error.status, message) from error
