"""The cluster as the rest of the operator sees it: a handful of verbs over plain dicts.

`kube.client` is the real one, `tests.support.fake_cluster` the one of unit tests. Every refusal is
raised as one of `errors.ClusterError`'s kinds, chosen by the HTTP status.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from supervisor_operator.api.v1alpha1.meta import GROUP, VERSION

Object = dict[str, Any]
"""A Kubernetes object as JSON."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind by the words of its address."""

    kind: str
    plural: str
    group: str = ""
    version: str = "v1"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def prefix(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


PODS = Resource("Pod", "pods")
NAMESPACES = Resource("Namespace", "namespaces")
EVENTS = Resource("Event", "events", "events.k8s.io")
LEASES = Resource("Lease", "leases", "coordination.k8s.io")
ROLES = Resource("Role", "roles", "rbac.authorization.k8s.io")
ROLE_BINDINGS = Resource("RoleBinding", "rolebindings", "rbac.authorization.k8s.io")
CRDS = Resource("CustomResourceDefinition", "customresourcedefinitions", "apiextensions.k8s.io")
POLICIES = Resource(
    "ValidatingAdmissionPolicy", "validatingadmissionpolicies", "admissionregistration.k8s.io"
)
POLICY_BINDINGS = Resource(
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
    "admissionregistration.k8s.io",
)
SUPERVISORS = Resource("Supervisor", "supervisors", GROUP, VERSION)
TEAMS = Resource("SupervisorTeam", "supervisorteams", GROUP, VERSION)
HEARTBEATS = Resource("Heartbeat", "heartbeats", GROUP, VERSION)


@dataclass(frozen=True, slots=True)
class Listing:
    """The answer to a LIST: what there was at one revision."""

    items: list[Object]
    revision: str


Slim = Callable[[Object], Object]


def as_it_is(item: Object) -> Object:
    return item


class Cluster(Protocol):
    """`namespace=None` means all namespaces, or a resource without namespaces."""

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Object: ...

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        selector: str = "",
        metadata_only: bool = False,
        slim: Slim = as_it_is,
    ) -> Listing:
        """A consistent LIST, page by page; `metadata_only` leaves spec and status out.

        Of each page `slim` is kept, so that a large list is never in memory as a whole.
        """
        ...

    def watch(
        self,
        resource: Resource,
        namespace: str | None,
        revision: str,
        *,
        selector: str = "",
        seconds: int = 300,
    ) -> AbstractAsyncContextManager[AsyncIterator[Object]]:
        """Events from a revision on, bookmarks included; 410 raises GoneError."""
        ...

    async def create(
        self, resource: Resource, namespace: str | None, item: Object, *, dry_run: bool = False
    ) -> Object:
        """Create, with strict field validation."""
        ...

    async def replace_status(self, resource: Resource, namespace: str, item: Object) -> Object:
        """PUT on /status with the item's own resourceVersion."""
        ...

    async def replace(self, resource: Resource, namespace: str | None, item: Object) -> Object:
        """PUT with the item's own resourceVersion."""
        ...

    async def merge(self, resource: Resource, namespace: str, name: str, patch: Object) -> Object:
        """JSON merge patch."""
        ...

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str | None = None
    ) -> Object:
        """DELETE, of this very incarnation where a uid is given; the object where it lives on."""
        ...

    async def version(self) -> tuple[int, int]:
        """Major and minor version of the server."""
        ...
