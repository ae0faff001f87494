"""Leader election on a Lease: at most one process works, another is ready to follow.

Only our own monotonic clock decides. A candidate waits until the Lease has not changed for as long
as it is said to hold; the leader stops writing well before that, counted from the moment it *sent*
its last successful renewal. The times written into the Lease are for people.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from supervisor_operator.backoff import scatter
from supervisor_operator.errors import (
    ClusterError,
    ConflictError,
    LeadershipLostError,
    NotFoundError,
)
from supervisor_operator.kube.cluster import LEASES, Cluster, Object

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """Where the Lease is, who we are in it, and its times; renew must be less than lease."""

    namespace: str
    name: str
    identity: str
    lease_seconds: int = 15
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0


class Leader:
    """`acquire`, then `hold` until it returns, then `release`; `check` before every write."""

    def __init__(
        self,
        cluster: Cluster,
        election: Election,
        *,
        clock: Callable[[], float],
        wall: Callable[[], datetime],
    ) -> None:
        self._cluster = cluster
        self._election = election
        self._clock = clock
        self._wall = wall
        self._deadline = -math.inf
        self._ours: Object | None = None
        self._other = ""
        self._others_revision = ""
        self._others_since = 0.0
        self._attempts = 0

    def remaining(self) -> float:
        """Seconds for which nobody else can lead; 0 where we do not."""
        return max(0.0, self._deadline - self._clock())

    def check(self) -> None:
        if not self.remaining():
            raise LeadershipLostError(
                f"{self._election.identity} does not hold lease {self._lease_name()} (any more):"
                " nothing may be written until it is acquired again"
            )

    def describe(self) -> str:
        """Our part, in words for people."""
        if self.remaining():
            return f"leader, holds {self._lease_name()}"
        return f"standby, waits for {self._lease_name()} of {self._other or 'nobody yet'}"

    async def acquire(self) -> None:
        """Wait until the Lease is ours."""
        _log.info("%s waits for lease %s", self._election.identity, self._lease_name())
        await self._attempt(self._take_if_free)
        while not self.remaining():
            self._attempts += 1
            jitter = 1.0 + 0.1 * scatter(self._election.identity, self._attempts)
            await asyncio.sleep(self._election.retry_seconds * jitter)
            await self._attempt(self._take_if_free)
        _log.info("%s holds lease %s", self._election.identity, self._lease_name())

    async def hold(self) -> None:
        """Renew for as long as we can; returns when leadership is lost."""
        while left := self.remaining():
            await asyncio.sleep(min(self._election.retry_seconds, left))
            if left := self.remaining():
                await self._attempt(self._renew, left)
        _log.warning("%s lost lease %s", self._election.identity, self._lease_name())

    async def release(self) -> None:
        """After `hold` ended: let another one follow at once; a failure costs only time."""
        self._deadline = -math.inf
        if self._ours is not None:
            await self._attempt(self._give_back)

    async def _attempt(self, step: Callable[[], Awaitable[None]], within: float = math.inf) -> None:
        """A hung connection must leave time for a second try before the deadline."""
        try:
            async with asyncio.timeout(min(within, self._election.renew_seconds / 2)):
                await step()
        except (ClusterError, TimeoutError) as error:
            cause = str(error) or type(error).__name__
            _log.warning("lease %s: %s", self._lease_name(), cause)

    async def _take_if_free(self) -> None:
        lease = await self._look()
        if lease is None or self._may_take(lease):
            await self._write(lease)

    async def _renew(self) -> None:
        try:
            await self._write(self._ours)
        except (ConflictError, NotFoundError):
            lease = await self._look()
            if lease and _holder(lease) != self._election.identity:
                self._ours, self._deadline = None, -math.inf
                _log.warning("lease %s is now of %r", self._lease_name(), _holder(lease))
            else:
                await self._write(lease)

    async def _give_back(self) -> None:
        lease = await self._look()
        if lease and _holder(lease) == self._election.identity:
            spec = lease["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1}
            await self._cluster.replace(LEASES, self._election.namespace, lease | {"spec": spec})
            _log.info("%s released lease %s", self._election.identity, self._lease_name())
        self._ours = None

    async def _look(self) -> Object | None:
        election = self._election
        try:
            return await self._cluster.get(LEASES, election.namespace, election.name)
        except NotFoundError:
            return None

    def _may_take(self, lease: Object) -> bool:
        if _holder(lease) in {"", self._election.identity}:
            return True
        self._other = _holder(lease)
        revision = lease["metadata"]["resourceVersion"]
        if revision != self._others_revision:
            self._others_revision, self._others_since = revision, self._clock()
        said = lease["spec"].get("leaseDurationSeconds") or self._election.lease_seconds
        return self._clock() - self._others_since >= said

    async def _write(self, lease: Object | None) -> None:
        """Make the Lease ours; a Lease that changed since we read it refuses (409)."""
        sent, election = self._clock(), self._election
        if lease is None:
            metadata = {"name": election.name, "namespace": election.namespace}
            fresh = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata}
            wanted = fresh | {"spec": self._spec({})}
            self._ours = await self._cluster.create(LEASES, election.namespace, wanted)
        else:
            wanted = lease | {"spec": self._spec(lease.get("spec", {}))}
            self._ours = await self._cluster.replace(LEASES, election.namespace, wanted)
        self._deadline = sent + election.renew_seconds

    def _spec(self, before: Object) -> Object:
        now = self._wall().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = before | {
            "holderIdentity": self._election.identity,
            "leaseDurationSeconds": self._election.lease_seconds,
            "renewTime": now,
        }
        if before.get("holderIdentity") != self._election.identity:
            spec |= {
                "acquireTime": now,
                "leaseTransitions": before.get("leaseTransitions", -1) + 1,
            }
        return spec

    def _lease_name(self) -> str:
        return f"{self._election.namespace}/{self._election.name}"


def _holder(lease: Object) -> str:
    holder: str = lease.get("spec", {}).get("holderIdentity") or ""
    return holder
