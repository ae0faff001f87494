"""Whose call it is, and what the API server lets them read: nobody gets more than they have.

What is read from the index is allowed by a SelfSubjectAccessReview made with the caller's own
token, remembered for seconds. What is written goes to the API server with that token. Tokens are
kept nowhere; what is remembered is found by their hash.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from supervisor_operator.errors import ClusterError, ForbiddenError
from supervisor_operator.kube.client import KubeCluster
from supervisor_operator.kube.cluster import Resource

REVIEWS = Resource("SelfSubjectAccessReview", "selfsubjectaccessreviews", "authorization.k8s.io")
TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
REMEMBER_SECONDS = 5.0
REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class Caller:
    digest: bytes
    cluster: KubeCluster
    """The API server in the caller's name."""


@dataclass(frozen=True, slots=True)
class Question:
    verb: str
    resource: Resource
    namespace: str | None
    name: str = ""

    @property
    def attributes(self) -> dict[str, str]:
        found = {
            "verb": self.verb,
            "group": self.resource.group,
            "version": self.resource.version,
            "resource": self.resource.plural,
            "namespace": self.namespace or "",
            "name": self.name,
        }
        return {key: value for key, value in found.items() if value}


Key = tuple[bytes, Question]


class Access:
    def __init__(
        self,
        strangers: KubeCluster,
        clock: Callable[[], float],
        *,
        seconds: float = REMEMBER_SECONDS,
        size: int = REMEMBERED,
    ) -> None:
        self._strangers = strangers
        self._clock = clock
        self._seconds = seconds
        self._size = size
        self._known: OrderedDict[Key, tuple[float, str | None]] = OrderedDict()
        self._asking: dict[Key, asyncio.Task[str | None]] = {}

    def caller(self, token: str) -> Caller:
        return Caller(hashlib.sha256(token.encode()).digest(), self._strangers.with_token(token))

    async def require(self, caller: Caller, question: Question) -> None:
        """Raises what the API server would say: 401, or 403 in its own words."""
        words = await self._ask(caller, question)
        if words is not None:
            raise ForbiddenError(words, status=403, reason="Forbidden")

    async def require_one(self, caller: Caller, question: Question) -> None:
        """For one object: a right to all of the namespace, or to this name."""
        whole = Question(question.verb, question.resource, question.namespace)
        if not await self.allows(caller, whole):
            await self.require(caller, question)

    async def allows(self, caller: Caller, question: Question) -> bool:
        return await self._ask(caller, question) is None

    async def _ask(self, caller: Caller, question: Question) -> str | None:
        """None where it is allowed, else why not."""
        key = (caller.digest, question)
        known = self._known.get(key)
        if known and known[0] > self._clock():
            self._known.move_to_end(key)
            return known[1]
        task = self._asking.get(key)
        if task is None:
            task = asyncio.create_task(self._review(caller, question, key))
            self._asking[key] = task
            task.add_done_callback(lambda done: self._answered(key, done))
        # Others wait for the same answer: one caller who leaves must not take it along.
        return await asyncio.shield(task)

    def _answered(self, key: Key, task: asyncio.Task[str | None]) -> None:
        self._asking.pop(key, None)
        if not task.cancelled():
            task.exception()  # looked at, though everybody who asked may have left

    async def _review(self, caller: Caller, question: Question, key: Key) -> str | None:
        body = {
            "apiVersion": REVIEWS.api_version,
            "kind": REVIEWS.kind,
            "spec": {"resourceAttributes": question.attributes},
        }
        answer = await caller.cluster.create(REVIEWS, None, body)
        words = None
        if not answer["status"].get("allowed"):
            words = await _words(caller, question, answer["status"].get("reason", ""))
        self._known[key] = (self._clock() + self._seconds, words)
        self._known.move_to_end(key)
        while len(self._known) > self._size:
            self._known.popitem(last=False)
        return words


async def _words(caller: Caller, question: Question, reason: str) -> str:
    """A review says no without a word: the request itself is refused with all of them."""
    cluster, resource, namespace = caller.cluster, question.resource, question.namespace
    try:
        if question.verb == "get":
            await cluster.get(resource, namespace, question.name or "any")
        elif question.verb == "watch":
            async with cluster.watch(resource, namespace, "0", seconds=1):
                pass
        else:
            await cluster.list(resource, namespace)
    except ForbiddenError as error:
        return str(error)
    except ClusterError:
        pass
    where = f"in namespace {namespace}" if namespace else "in all namespaces"
    said = f": {reason}" if reason else ""
    return f"{resource.plural}.{resource.group} {where}: {question.verb} is not allowed{said}"
