"""kopf as a part of our process: its settings, its login by our own configuration, its run."""

from __future__ import annotations

import asyncio
from typing import Any

import kopf

from supervisor_operator.kube.configuration import authorization, load_configuration

WATCH_SECONDS = 300
EXIT_SECONDS = 0.5


def quieten(settings: kopf.OperatorSettings) -> None:
    """No Events, no annotations, no finalizers, no watching of CRDs and namespaces."""
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.server_timeout = WATCH_SECONDS
    settings.watching.client_timeout = WATCH_SECONDS + 10
    settings.queueing.exit_timeout = EXIT_SECONDS
    settings.background.instant_exit_timeout = 0.1


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
    await kopf.operator(
        registry=registry,
        settings=settings,
        standalone=True,
        clusterwide=not namespaces,
        namespaces=namespaces,
        stop_flag=stop,
        ready_flag=ready,
    )
