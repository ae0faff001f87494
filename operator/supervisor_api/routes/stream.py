"""The snapshot, and the stream of what changes after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Response
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from supervisor_api.access import Caller, Question
from supervisor_api.feed import Message, frame
from supervisor_api.keeping import pack
from supervisor_api.models import SnapshotOut
from supervisor_api.problems import ProblemError
from supervisor_api.routes.shared import JSON, PROBLEMS, OneNamespace, header
from supervisor_api.service import Service, TheCaller, TheService
from supervisor_operator.errors import ClusterError
from supervisor_operator.kube.cluster import SUPERVISORS
from supervisor_operator.subscription import Gap, Subscription

STREAM = "text/event-stream"

router = APIRouter(tags=["stream"], responses=PROBLEMS)
TAG = header("ETag", "Changes with the version; give it as If-None-Match")
Tag = Annotated[str | None, Header(max_length=256)]


@router.get(
    "/snapshot",
    response_model=SnapshotOut,
    responses={
        200: {"headers": TAG},
        304: {"description": "Nothing has changed since If-None-Match", "headers": TAG},
    },
)
async def get_snapshot(
    service: TheService,
    caller: TheCaller,
    namespace: OneNamespace = None,
    if_none_match: Tag = None,
) -> Response:
    """All agents at one moment. Its ETag is its version."""
    service.check_index(namespace)
    await service.access.require(caller, Question("list", SUPERVISORS, namespace))
    feed = service.index.feed
    headers = {"ETag": f'"{feed.event_id}"', "Cache-Control": "private, no-cache"}
    if if_none_match == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(feed.snapshot(namespace), headers=headers, media_type=JSON)


@router.get(
    "/events",
    response_class=Response,
    responses={200: {"content": {STREAM: {"schema": {"type": "string"}}}}},
)
async def get_events(
    service: TheService,
    caller: TheCaller,
    namespace: OneNamespace = None,
    last_event_id: Tag = None,
) -> Response:
    """What changes, as server-sent events; `gap` means: take a snapshot and come back."""
    service.check_index(namespace)
    question = Question("watch", SUPERVISORS, namespace)
    await service.access.require(caller, question)
    _check_room(service, caller)
    reader = service.index.feed.follow(namespace, last_event_id, caller.digest)
    return EventStream(reader, _frames(service, caller, question, reader))


def _check_room(service: Service, caller: Caller) -> None:
    feed, settings = service.index.feed, service.settings
    fix, wait = "End one of them, or poll /snapshot.", {"Retry-After": "30"}
    if feed.readers >= settings.max_streams:
        raise ProblemError(503, f"all {feed.readers} streams are taken", fix, headers=wait)
    own = feed.readers_of(caller.digest)
    if own >= settings.max_streams_per_token:
        raise ProblemError(429, f"this token has {own} streams open", fix, headers=wait)


async def _frames(
    service: Service, caller: Caller, question: Question, reader: Subscription[Message]
) -> AsyncIterator[bytes]:
    feed = service.index.feed
    yield frame("ready", pack({"version": feed.version}), feed.event_id)
    while True:
        found: Message | Gap | None
        try:
            found = await asyncio.wait_for(anext(reader), service.settings.stream_seconds)
        except StopAsyncIteration:
            return
        except TimeoutError:
            found = None
        # Before the event, not after it: it may come long after the right to it has ended.
        if not await _may_stay(service, caller, question):
            return
        if found is None:
            yield b": still here\n\n"
        elif isinstance(found, Gap):
            yield _gap(feed.event_id, found)
            return
        else:
            yield found.frame


def _gap(event_id: str, gap: Gap) -> bytes:
    words = "events were left out: take GET /api/v1/snapshot and go on from its eventId"
    return frame("gap", pack({"version": gap.version, "detail": words}), event_id)


async def _may_stay(service: Service, caller: Caller, question: Question) -> bool:
    """Rights may end while a stream goes on; an API server that is away is no reason to leave."""
    try:
        return await service.access.allows(caller, question)
    except ClusterError as error:
        return error.status is None


class EventStream(Response):
    """Ends with its frames or with its reader's leaving."""

    media_type = STREAM

    def __init__(self, reader: Subscription[Message], frames: AsyncIterator[bytes]) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._reader = reader
        self._frames = frames

    @override
    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._reader.close()
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        async for body in self._frames:
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
