"""The right to beat: one Role and one binding per namespace, made when the first agent needs them.

They let any pod of the namespace patch the status of Heartbeats; the admission policy narrows that
to its own. So where the policy is missing nobody is granted anything.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress

from supervisor_operator.api.v1alpha1.meta import GROUP
from supervisor_operator.core.words import MANAGED_BY, MANAGER
from supervisor_operator.errors import ConflictError, ForbiddenError, NotFoundError
from supervisor_operator.kube.cluster import (
    POLICIES,
    POLICY_BINDINGS,
    ROLE_BINDINGS,
    ROLES,
    Cluster,
    Object,
    Resource,
)

_log = logging.getLogger(__name__)

NAME = "supervision-beats"
POLICY_NAME = "supervision-heartbeats"
TRUSTED_SECONDS = 600.0
RBAC = "rbac.authorization.k8s.io"
RULES = [
    {"apiGroups": [GROUP], "resources": ["heartbeats"], "verbs": ["get"]},
    {"apiGroups": [GROUP], "resources": ["heartbeats/status"], "verbs": ["patch"]},
]


class BeatRights:
    def __init__(self, cluster: Cluster, clock: Callable[[], float] = time.monotonic) -> None:
        self.policy_present = False
        self._cluster = cluster
        self._clock = clock
        self._granted: dict[str, float] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def look_for_policy(self) -> bool:
        """Whether policy and binding are installed; a missing right to look counts as missing."""
        try:
            await self._cluster.get(POLICIES, None, POLICY_NAME)
            await self._cluster.get(POLICY_BINDINGS, None, POLICY_NAME)
        except (NotFoundError, ForbiddenError):
            self.policy_present = False
        else:
            self.policy_present = True
        return self.policy_present

    async def heal(self) -> None:
        """Make again what somebody removed since it was granted."""
        for namespace in tuple(self._granted):
            del self._granted[namespace]
            problem = await self.ensure(namespace)
            if problem:
                _log.warning("agents of namespace %s may not beat: %s", namespace, problem)

    async def ensure(self, namespace: str) -> str | None:
        """Make Role and binding where they are missing; says what stands in the way."""
        if self._is_granted(namespace):
            return None
        async with self._locks[namespace]:
            return None if self._is_granted(namespace) else await self._grant(namespace)

    def _is_granted(self, namespace: str) -> bool:
        granted = self._granted.get(namespace)
        return granted is not None and self._clock() - granted < TRUSTED_SECONDS

    async def _grant(self, namespace: str) -> str | None:
        for resource, item, content in _wanted(namespace):
            problem = await self._ensure_one(resource, namespace, item, content)
            if problem:
                return problem
        self._granted[namespace] = self._clock()
        return None

    async def _ensure_one(
        self, resource: Resource, namespace: str, item: Object, content: tuple[str, ...]
    ) -> str | None:
        try:
            found = await self._cluster.get(resource, namespace, NAME)
        except NotFoundError:
            with suppress(ConflictError):
                await self._cluster.create(resource, namespace, item)
            return None
        if all(found.get(field) == item[field] for field in content):
            return None
        return f"A {resource.kind} {NAME} with other content exists already"


def _wanted(namespace: str) -> list[tuple[Resource, Object, tuple[str, ...]]]:
    metadata = {"name": NAME, "namespace": namespace, "labels": {MANAGED_BY: MANAGER}}
    role = {"apiVersion": ROLES.api_version, "kind": "Role", "metadata": metadata, "rules": RULES}
    group = f"system:serviceaccounts:{namespace}"
    binding = {
        "apiVersion": ROLE_BINDINGS.api_version,
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": NAME},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": group}],
    }
    return [(ROLES, role, ("rules",)), (ROLE_BINDINGS, binding, ("roleRef", "subjects"))]
