"""What must be true before the operator works; each failure says what to do about it."""

from __future__ import annotations

import asyncio
import logging

from supervisor_operator.errors import (
    ClusterError,
    ForbiddenError,
    NotFoundError,
    SupervisorOperatorError,
    TransientError,
)
from supervisor_operator.kube.cluster import HEARTBEATS, NAMESPACES, SUPERVISORS, TEAMS, Cluster
from supervisor_operator.settings import Settings

OLDEST = (1, 32)
TRY_EVERY_SECONDS = 1.0


_log = logging.getLogger(__name__)


class PreflightError(SupervisorOperatorError):
    """The operator cannot work here; the message names the cause and the next step."""


async def check_cluster(cluster: Cluster, settings: Settings) -> None:
    found = await _answer(cluster, settings)
    if found < OLDEST:
        raise PreflightError(
            f"the API server is Kubernetes {found[0]}.{found[1]}, "
            f"{OLDEST[0]}.{OLDEST[1]} or newer is needed: upgrade the cluster"
        )
    for namespace in settings.namespaces:
        await _check_namespace(cluster, namespace)
    await _wait_for_crds(cluster, settings)


async def _answer(cluster: Cluster, settings: Settings) -> tuple[int, int]:
    """The server's version; one that is away gets as long as missing CRDs do.

    One that has just started forbids everything until it has read its roles.
    """
    deadline = asyncio.get_running_loop().time() + settings.crd_wait_seconds
    while True:
        try:
            return await cluster.version()
        except (TransientError, ForbiddenError) as error:
            if asyncio.get_running_loop().time() >= deadline:
                raise PreflightError(f"the API server does not answer: {error}") from error
        await asyncio.sleep(TRY_EVERY_SECONDS)


async def _check_namespace(cluster: Cluster, namespace: str) -> None:
    try:
        await cluster.get(NAMESPACES, None, namespace)
    except NotFoundError:
        raise PreflightError(
            f"--namespace: there is no namespace {namespace}: create it or name another"
        ) from None
    except ForbiddenError:
        return  # a namespaced install need not see namespaces


async def _wait_for_crds(cluster: Cluster, settings: Settings) -> None:
    deadline = asyncio.get_running_loop().time() + settings.crd_wait_seconds
    namespace = settings.namespaces[0] if settings.namespaces else None
    said = ""
    while problem := await _problem(cluster, namespace):
        if asyncio.get_running_loop().time() >= deadline:
            raise PreflightError(problem)
        if problem != said:
            _log.warning("%s (waiting for it)", problem)
        said = problem
        await asyncio.sleep(TRY_EVERY_SECONDS)


async def _problem(cluster: Cluster, namespace: str | None) -> str:
    """Why the custom objects cannot be read, and what to do; empty where they can."""
    missing = []
    for resource in (SUPERVISORS, TEAMS, HEARTBEATS):
        try:
            await cluster.list(resource, namespace, metadata_only=True)
        except NotFoundError:
            missing.append(resource.plural)
        except TransientError:
            continue
        except ClusterError as error:
            return f"{resource.plural} may not be listed: {error}. Apply the operator's RBAC rules"
    install = "run kubectl apply --server-side -f crds/"
    return f"the CRDs of {', '.join(missing)} are not installed: {install}" if missing else ""
