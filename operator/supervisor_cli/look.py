"""Reads the cluster for a command: the agents that were asked for, and how they are."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from supervisor_operator.clock import wall_clock
from supervisor_operator.core.health.assess import assess
from supervisor_operator.core.health.report import HealthReport
from supervisor_operator.core.health.subject import Beat, Subject
from supervisor_operator.core.words import MANAGED_SELECTOR
from supervisor_operator.errors import ForbiddenError, NotFoundError
from supervisor_operator.kube.client import KubeCluster, open_cluster
from supervisor_operator.kube.cluster import HEARTBEATS, SUPERVISORS, Object
from supervisor_operator.kube.configuration import context_namespace

AGENT = "kubectl-supervisor"
Beats = dict[tuple[str, str], Beat]
"""By namespace and pod."""


@dataclass(frozen=True, slots=True)
class Look:
    cluster: KubeCluster
    namespace: str | None
    """None for all."""
    selector: str
    names: tuple[str, ...]

    @property
    def where(self) -> str:
        return f"namespace {self.namespace}" if self.namespace else "any namespace"

    async def supervisors(self) -> list[Object]:
        """Those that were asked for; one that is not there is an error."""
        if self.names and self.namespace:
            return [await self.cluster.get(SUPERVISORS, self.namespace, n) for n in self.names]
        found = await self.cluster.list(SUPERVISORS, self.namespace, selector=self.selector)
        chosen = [one for one in found.items if self._is_named(one)]
        missing = set(self.names) - {one["metadata"]["name"] for one in chosen}
        if missing:
            names = ", ".join(sorted(missing))
            raise NotFoundError(f"there is no Supervisor {names} in {self.where}", status=404)
        return chosen

    async def reports(self) -> list[HealthReport]:
        items, beats = await self.supervisors(), await self.beats()
        now = wall_clock()
        return [report(item, beats, now) for item in items]

    async def beats(self) -> Beats:
        """What nobody lets us read we do without."""
        try:
            found = await self.cluster.list(HEARTBEATS, self.namespace, selector=MANAGED_SELECTOR)
        except ForbiddenError:
            return {}
        return {
            (item["metadata"]["namespace"], item["metadata"]["name"]): Beat.of(item)
            for item in found.items
        }

    def _is_named(self, item: Object) -> bool:
        return not self.names or item["metadata"]["name"] in self.names


def report(item: Object, beats: Beats, now: datetime) -> HealthReport:
    subject = Subject.of(item)
    status = subject.status
    beat = beats.get((subject.namespace, status.pod_name or ""))
    is_of_pod = beat is not None and beat.pod_uid == status.pod_uid
    return assess(subject, now, beat if is_of_pod else None)


@asynccontextmanager
async def looking(options: argparse.Namespace) -> AsyncIterator[Look]:
    namespace = None
    if not options.all_namespaces:
        namespace = options.namespace or context_namespace(options.kubeconfig, options.context)
    names = tuple(getattr(options, "names", ()))
    opened = open_cluster(options.kubeconfig, context=options.context, agent=AGENT)
    async with opened as cluster:
        yield Look(cluster, namespace, options.selector, names)
