"""The real cluster: the verbs of `kube.cluster` as HTTP requests of `kubernetes.aio`.

Dicts go in and come out; the generated models are never used. Whatever the API server refuses and
whatever the network breaks is raised as one of `errors.ClusterError`'s kinds.
"""

from __future__ import annotations

import asyncio
import copy
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aiohttp
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.client.rest import RESTClientObject

from supervisor_operator.core.words import MANAGER
from supervisor_operator.errors import GoneError
from supervisor_operator.kube.cluster import (
    EVENTS,
    HEARTBEATS,
    LEASES,
    PODS,
    Listing,
    Object,
    Resource,
    Slim,
    as_it_is,
)
from supervisor_operator.kube.configuration import (
    authorization,
    load_configuration,
    without_credentials,
)
from supervisor_operator.kube.wire import Call, events, reachable, refusal

OnCall = Callable[[str, str, str, float], None]
"""Is told verb, plural, status code and seconds of every request."""

DEEPEST = 10_000
"""Objects may be nested so deep: Go's JSON, and so the API server's, ends there."""
FRAMES = 2 * DEEPEST + 1000
"""Copies take two per level. Tried up to here with 8 MiB of stack; far beyond, Python crashes."""
_PAGE = 250
_ANSWER_WITHIN = aiohttp.ClientTimeout(total=30)
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_HEADERS = {
    "Accept": "application/json",
    # Inside a cluster bytes are cheaper than the API server's CPU.
    "Accept-Encoding": "identity",
}
_NO_STATUS = "<error>"
_REFUSED = 300


def _ignore_call(_verb: str, _plural: str, _code: str, _seconds: float) -> None:
    pass


def _allow_write() -> None:
    pass


@asynccontextmanager
async def open_cluster(
    kubeconfig: str | None,
    *,
    context: str | None = None,
    on_call: OnCall = _ignore_call,
    agent: str = MANAGER,
) -> AsyncIterator[KubeCluster]:
    """The cluster of this kubeconfig, else $KUBECONFIG, else our pod's, else ~/.kube/config."""
    # One object that Python cannot read would end the watch of all, kopf's too.
    sys.setrecursionlimit(max(sys.getrecursionlimit(), FRAMES))
    configuration = await load_configuration(kubeconfig, context)
    async with aclosing(KubeCluster(configuration, on_call, agent=agent)) as cluster:
        yield cluster


class KubeCluster:
    """Implements `kube.cluster.Cluster`.

    `guard` is called before each write, Leases excepted, and may raise LeadershipLostError.
    `idle_seconds` is how long a watch may send nothing, not even a bookmark. `breaths` is how long
    a watch rests after events came, so that the next come together: a beat may be seen late by
    that, and its deadline moves with it; a crash too, if another pod was heard of just before.
    `agent` is who we are in the API server's log and, its first word, in managedFields.
    """

    def __init__(
        self,
        configuration: Configuration,
        on_call: OnCall = _ignore_call,
        *,
        requests_at_once: int = 64,
        agent: str = MANAGER,
    ) -> None:
        self.guard: Callable[[], None] = _allow_write
        self.idle_seconds = 90.0
        self.breaths = {HEARTBEATS: 0.1, PODS: 0.05}
        self._configuration = configuration
        self._rest: Any = RESTClientObject(configuration)
        self._on_call = on_call
        self._slots = asyncio.Semaphore(requests_at_once)
        self._agent = agent
        self._token: str | None = None

    async def aclose(self) -> None:
        await self._rest.close()

    def for_strangers(self) -> KubeCluster:
        """The same API server without any credentials of ours; to be closed on its own."""
        bare = without_credentials(self._configuration)
        return KubeCluster(bare, self._on_call, agent=self._agent)

    def with_token(self, token: str) -> KubeCluster:
        """The same connections in the name of whoever holds this token."""
        theirs = copy.copy(self)
        theirs._token = token  # noqa: SLF001 - a copy of ourselves
        return theirs

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Object:
        return await self._ask(Call("get", resource.plural, _path(resource, namespace, name)))

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        selector: str = "",
        metadata_only: bool = False,
        slim: Slim = as_it_is,
    ) -> Listing:
        headers = {"Accept": _METADATA_ONLY} if metadata_only else {}
        query = {"labelSelector": selector} if selector else {}
        call = Call("list", resource.plural, _path(resource, namespace), query, headers=headers)
        try:
            found = await self._pages(call, {"limit": str(_PAGE)}, slim)
        except GoneError:  # the list was too long for the life of its continue token
            found = await self._pages(call, {}, slim)
        if not metadata_only:
            _name_kind(found.items, resource)
        return found

    async def events_about(self, namespace: str, uid: str) -> tuple[Object, ...]:
        query = {"fieldSelector": f"regarding.uid={uid}"}
        call = Call("list", EVENTS.plural, _path(EVENTS, namespace), query)
        return tuple((await self._pages(call, {"limit": str(_PAGE)}, as_it_is)).items)

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        namespace: str | None,
        revision: str,
        *,
        selector: str = "",
        seconds: int = 300,
    ) -> AsyncIterator[AsyncIterator[Object]]:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": revision,
            "timeoutSeconds": str(seconds),
        } | ({"labelSelector": selector} if selector else {})
        call = Call("watch", resource.plural, _path(resource, namespace), query)
        patience = aiohttp.ClientTimeout(sock_connect=30, sock_read=self.idle_seconds)
        with self._counted(call) as seen:
            response = await self._send(call, patience, seen)
        breath = self.breaths.get(resource, 0.0)
        try:
            async with aclosing(events(call, response, breath)) as found:
                yield found
        finally:
            response.close()

    async def create(
        self, resource: Resource, namespace: str | None, item: Object, *, dry_run: bool = False
    ) -> Object:
        query = {"fieldValidation": "Strict"} | ({"dryRun": "All"} if dry_run else {})
        path = _path(resource, namespace)
        return await self._ask(Call("create", resource.plural, path, query, item))

    async def replace(self, resource: Resource, namespace: str | None, item: Object) -> Object:
        path = _path(resource, namespace, item["metadata"]["name"])
        return await self._ask(Call("update", resource.plural, path, body=item))

    async def replace_status(self, resource: Resource, namespace: str, item: Object) -> Object:
        path = _path(resource, namespace, item["metadata"]["name"]) + "/status"
        what = f"{resource.plural}/status"
        return await self._ask(Call("update", what, path, body=item))

    async def merge(
        self, resource: Resource, namespace: str, name: str, patch: Object, *, strict: bool = False
    ) -> Object:
        path = _path(resource, namespace, name)
        headers = {"Content-Type": "application/merge-patch+json"}
        query = {"fieldValidation": "Strict"} if strict else {}
        call = Call("patch", resource.plural, path, query, patch, headers)
        return await self._ask(call)

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str | None = None
    ) -> Object:
        body: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            body["preconditions"] = {"uid": uid}
        path = _path(resource, namespace, name)
        return await self._ask(Call("delete", resource.plural, path, body=body))

    @asynccontextmanager
    async def logs(
        self, namespace: str, pod: str, query: Mapping[str, str]
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The log of a pod in pieces as they come."""
        call = Call("get", "pods/log", f"{_path(PODS, namespace, pod)}/log", query)
        patience = aiohttp.ClientTimeout(sock_connect=30)
        with self._counted(call) as seen:
            response = await self._send(call, patience, seen)
        try:
            with reachable(call):
                yield response.content.iter_any()
        finally:
            response.close()

    async def version(self) -> tuple[int, int]:
        found = await self._ask(Call("get", "version", "/version"))
        return _leading_number(found["major"]), _leading_number(found["minor"])

    async def _pages(self, call: Call, limit: Mapping[str, str], slim: Slim) -> Listing:
        items: list[Object] = []
        revision, following = "", ""
        while True:
            query = {**call.query, **limit} | ({"continue": following} if following else {})
            page = await self._ask(
                Call(call.verb, call.what, call.path, query, headers=call.headers)
            )
            items += map(slim, page["items"] or ())  # the metadata of none is null
            revision = revision or page["metadata"]["resourceVersion"]
            following = page["metadata"].get("continue", "")
            if not following:
                return Listing(items, revision)

    async def _ask(self, call: Call) -> Object:
        # A renewal must not wait in line behind the work it protects.
        lease = call.what == LEASES.plural
        async with nullcontext() if lease else self._slots:
            if call.writes and not lease:
                self.guard()
            with self._counted(call) as seen:
                response = await self._send(call, _ANSWER_WITHIN, seen)
                with reachable(call):
                    found: Object = json.loads(await response.read())
                    return found

    async def _send(
        self, call: Call, patience: aiohttp.ClientTimeout, seen: _Seen
    ) -> aiohttp.ClientResponse:
        with reachable(call):
            headers = {
                "User-Agent": self._agent,
                **_HEADERS,
                **call.headers,
                **await self._authorization(),
            }
            url = self._configuration.host + call.url
            answer = await self._rest.request(
                call.method, url, headers=headers, body=call.body, _request_timeout=patience
            )
            response: aiohttp.ClientResponse = answer.response
            seen.code = str(response.status)
            if response.status < _REFUSED:
                return response
            body = await response.read()
        raise refusal(call, response, body)

    async def _authorization(self) -> dict[str, str]:
        if self._token is not None:
            return {"Authorization": f"Bearer {self._token}"}
        return await authorization(self._configuration)

    @contextmanager
    def _counted(self, call: Call) -> Iterator[_Seen]:
        seen, started = _Seen(), time.perf_counter()
        try:
            yield seen
        finally:
            self._on_call(call.verb, call.what, seen.code, time.perf_counter() - started)


@dataclass(slots=True)
class _Seen:
    code: str = _NO_STATUS


def _path(resource: Resource, namespace: str | None, name: str = "") -> str:
    inside = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    one = f"/{quote(name, safe='')}" if name else ""
    return f"{resource.prefix}{inside}/{resource.plural}{one}"


def _name_kind(items: list[Object], resource: Resource) -> None:
    """Lists of built-in kinds leave out what each watch event says."""
    for item in items:
        item.setdefault("apiVersion", resource.api_version)
        item.setdefault("kind", resource.kind)


def _leading_number(text: str) -> int:
    found = re.match(r"\d+", text)
    return int(found.group()) if found else 0
