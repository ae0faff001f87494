"""What every answer is made from: the index, the callers' rights, the limits, the clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, cast

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from supervisor_api.access import TOKEN, Access, Caller, Question
from supervisor_api.index import Index
from supervisor_api.keeping import Kept
from supervisor_api.limits import Rate
from supervisor_api.problems import ProblemError, field_error
from supervisor_api.settings import Settings
from supervisor_operator.errors import NotFoundError
from supervisor_operator.kube.cluster import Resource

HOW = "Send a Kubernetes token of yours in the header Authorization: Bearer …"
_bearer = HTTPBearer(
    auto_error=False, description="A Kubernetes token of yours, as of kubectl create token."
)


@dataclass(frozen=True, slots=True)
class Service:
    settings: Settings
    index: Index
    access: Access
    rate: Rate
    """Of each token."""
    newcomers: Rate
    """Of each address, tokens that were not seen before: made-up ones are no way round `rate`."""
    wall: Callable[[], datetime]

    def check_index(self, namespace: str | None = None) -> None:
        if not self.index.covers(namespace):
            fix = "this management API was started for other namespaces (--namespace)"
            raise field_error("query.namespace", namespace, fix)
        if why := self.index.unwell():
            raise ProblemError(
                503, f"the index is not whole: {why}", "Try again in a moment.", headers=RETRY
            )


RETRY = {"Retry-After": "1"}


# FastAPI hands what is not async to a thread.
async def get_service(request: Request) -> Service:
    return cast("Service", request.app.state.service)


TheService = Annotated[Service, Depends(get_service)]


async def get_caller(
    request: Request,
    service: TheService,
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Caller:
    address = (request.client.host if request.client else "").encode()
    if given is None or not TOKEN.fullmatch(given.credentials):
        service.rate.take(address)
        raise ProblemError(401, "there is no bearer token in the request", HOW)
    caller = service.access.caller(given.credentials)
    if not service.rate.knows(caller.digest):
        service.newcomers.take(address)
    service.rate.take(caller.digest)
    request.state.caller = caller
    return caller


TheCaller = Annotated[Caller, Depends(get_caller)]


@dataclass(frozen=True, slots=True)
class Target:
    """One object, named by its UID or by namespace and name."""

    resource: Resource
    namespace: str
    name: str
    uid: str = ""
    """Where it was named by that: another object of the same name is not meant."""

    @property
    def precondition(self) -> dict[str, str]:
        return {"uid": self.uid} if self.uid else {}


async def find(service: Service, caller: Caller, resource: Resource, uid: str) -> Target:
    service.check_index()
    kept = service.index.by_uid(resource, uid)
    if kept is None:
        # Whether the token is any good is known only once the API server has seen it.
        await service.access.allows(caller, Question("get", resource, None))
        raise NotFoundError(f"there is no {resource.kind} with the id {uid}", status=404)
    return Target(resource, *kept.key, uid)


async def read(service: Service, caller: Caller, target: Target) -> Kept:
    """The object as the index has it, for those who may get it."""
    service.check_index()
    question = Question("get", target.resource, target.namespace, target.name)
    await service.access.require_one(caller, question)
    kept = service.index.store_of(target.resource).get((target.namespace, target.name))
    if kept is None or target.uid not in {"", kept.uid}:
        words = f'{target.resource.plural}.{target.resource.group} "{target.name}" not found'
        raise NotFoundError(f"{words} in namespace {target.namespace}", status=404)
    return kept
