"""What the routes of both kinds share: finding, listing, making, changing, removing."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Annotated, Any, cast

from fastapi import Path, Query, Request, Response
from pydantic import Field

from supervisor_api.access import Caller, Question
from supervisor_api.keeping import Kept, pack
from supervisor_api.models import NAME, Problem
from supervisor_api.problems import field_error
from supervisor_api.selector import Selector
from supervisor_api.service import Service, Target, TheCaller, TheService, find
from supervisor_operator.api.v1alpha1.meta import Health, Phase
from supervisor_operator.core.health.report import Level
from supervisor_operator.kube.cluster import Object, Resource
from supervisor_operator.kube.store import Key

JSON = "application/json"
LIMIT = 500


def header(name: str, words: str) -> dict[str, Any]:
    """A header of an answer, as OpenAPI describes it."""
    return {name: {"description": words, "schema": {"type": "string"}}}


LATER = header("Retry-After", "Seconds to wait before the next try")
MADE: dict[int | str, dict[str, Any]] = {
    201: {"headers": header("Location", "Address of what was made, by its UID")}
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    401: {"model": Problem, "description": "No token, or one that the API server refuses"},
    403: {"model": Problem, "description": "Not allowed, in the API server's words"},
    413: {"model": Problem, "description": "The request is too long"},
    422: {"model": Problem, "description": "A field is wrong"},
    429: {"model": Problem, "description": "Too many requests", "headers": LATER},
    503: {
        "model": Problem,
        "description": "The API server or the index is not there",
        "headers": LATER,
    },
}
ABSENT: dict[int | str, dict[str, Any]] = {
    404: {"model": Problem, "description": "There is no such object"}
}
CLASH: dict[int | str, dict[str, Any]] = {
    409: {"model": Problem, "description": "It exists already, or somebody changed it in between"}
}

Id = Annotated[
    str,
    Path(description="UID of the object", min_length=1, max_length=64, pattern="^[0-9a-zA-Z-]+$"),
]
Namespace = Annotated[
    str, Path(description="Namespace of the object", min_length=1, max_length=63, pattern=NAME)
]
Name = Annotated[
    str, Path(description="Name of the object", min_length=1, max_length=253, pattern=NAME)
]
OneNamespace = Annotated[
    Annotated[str, Field(min_length=1, max_length=63, pattern=NAME)] | None,
    Query(description="This namespace only; the caller needs rights in all of them without it"),
]


class Finder:
    """Puts the object that the path names into the request; one for each kind."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    async def by_uid(
        self,
        request: Request,
        service: TheService,
        caller: TheCaller,
        id: Id,  # noqa: A002 - its name in the path
    ) -> None:
        request.state.target = await find(service, caller, self._resource, id)

    async def by_name(
        self, request: Request, _caller: TheCaller, namespace: Namespace, name: Name
    ) -> None:
        request.state.target = Target(self._resource, namespace, name)


async def get_target(request: Request) -> Target | None:
    """None only where the path is wrong: FastAPI goes on, to tell of all errors at once."""
    return cast("Target | None", getattr(request.state, "target", None))


class Choice:
    """The filters of a list."""

    def __init__(  # noqa: PLR0913 - each is a parameter of the query
        self,
        *,
        namespace: OneNamespace = None,
        label_selector: Annotated[
            str,
            Query(
                alias="labelSelector",
                max_length=1024,
                description="As in app=x,!old,env notin (a,b)",
            ),
        ] = "",
        phase: Annotated[Phase | None, Query(description="Only those in this phase")] = None,
        health: Annotated[Health | None, Query(description="Only agents of this health")] = None,
        level: Annotated[Level | None, Query(description="Only those of this level")] = None,
        limit: Annotated[int, Query(ge=1, le=LIMIT, description="Objects per page")] = 100,
        following: Annotated[
            str, Query(alias="continue", max_length=1024, description="From the page before")
        ] = "",
    ) -> None:
        self.namespace = namespace
        self.limit = limit
        self._selector = Selector.parse(label_selector)
        self._words = (str(phase or ""), str(health or ""), str(level or ""))
        self._after = _key(following) if following else None

    def page(self, kept: Iterator[Kept]) -> tuple[list[Kept], int, str]:
        """Those of this page, how many there are on all, and the way to the next."""
        chosen = sorted((one for one in kept if self._takes(one)), key=lambda one: one.key)
        after = self._after
        left = [one for one in chosen if after is None or one.key > after]
        shown = left[: self.limit]
        more = _token(shown[-1].key) if len(left) > len(shown) else ""
        return shown, len(chosen), more

    def _takes(self, kept: Kept) -> bool:
        phase, health, level = self._words
        return (
            self.namespace in {None, kept.key[0]}
            and phase in {"", kept.phase}
            and health in {"", kept.health}
            and level in {"", kept.level}
            and self._selector.takes(kept.labels)
        )


async def list_page(
    service: Service, caller: Caller, resource: Resource, choice: Choice
) -> Response:
    service.check_index(choice.namespace)
    await service.access.require(caller, Question("list", resource, choice.namespace))
    shown, total, more = choice.page(service.index.store_of(resource).values())
    head = {"total": total} | ({"continue": more} if more else {})
    items = b",".join(one.shown for one in shown)
    return Response(pack(head)[:-1] + b',"items":[' + items + b"]}", media_type=JSON)


async def make(
    service: Service, caller: Caller, resource: Resource, raw: dict[str, Any], address: str
) -> Response:
    namespace = raw.get("namespace", "default")
    metadata = {"name": raw["name"], "namespace": namespace}
    if raw.get("labels"):
        metadata["labels"] = raw["labels"]
    item = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": raw["spec"],
    }
    made = await caller.cluster.create(resource, namespace, item)
    kept = service.index.put(resource, made)
    return Response(kept.shown, 201, {"Location": f"{address}/{kept.uid}"}, JSON)


async def change(service: Service, caller: Caller, target: Target, raw: dict[str, Any]) -> Response:
    metadata: dict[str, Any] = dict(target.precondition)
    for field in ("labels", "resourceVersion"):
        if raw.get(field) is not None:
            metadata[field] = raw[field]
    patch: dict[str, Any] = {"metadata": metadata}
    if raw.get("spec") is not None:
        patch["spec"] = raw["spec"]
    return await write(service, caller, target, patch)


async def write(service: Service, caller: Caller, target: Target, patch: Object) -> Response:
    """A change of the caller's, and the object as it is then."""
    changed = await caller.cluster.merge(
        target.resource, target.namespace, target.name, patch, strict=True
    )
    kept = service.index.put(target.resource, changed)
    return Response(kept.shown, media_type=JSON)


async def remove(caller: Caller, target: Target) -> Response:
    uid = target.uid or None
    await caller.cluster.delete(target.resource, target.namespace, target.name, uid=uid)
    return Response(status_code=204)


async def read_raw(request: Request) -> dict[str, Any]:
    """The body as it was sent: the API server, not we, tells of fields that it does not know."""
    found = await request.json()
    if not isinstance(found, dict):
        raise field_error("body", found, "an object is expected")
    return found


def _token(key: Key) -> str:
    return base64.urlsafe_b64encode("/".join(key).encode()).decode()


def _key(token: str) -> Key:
    try:
        namespace, _, name = base64.urlsafe_b64decode(token).decode().partition("/")
    except (binascii.Error, ValueError):
        fix = "give the value of `continue` of the page before, unchanged"
        raise field_error("query.continue", token, fix) from None
    return namespace, name
