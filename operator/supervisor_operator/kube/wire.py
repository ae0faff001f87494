"""One request on the wire: what it asks, what its refusal means, what its stream says."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlencode

import aiohttp

from supervisor_operator.errors import ClusterError, TransientError, cluster_error
from supervisor_operator.kube.cluster import Object

_METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_SHOWN = 200
_GULP = 64 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """One request; `what` is how the metrics name its target."""

    verb: str
    what: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Object | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def method(self) -> str:
        return _METHODS.get(self.verb, "GET")

    @property
    def writes(self) -> bool:
        return self.verb in _METHODS

    @property
    def url(self) -> str:
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"


@contextmanager
def reachable(call: Call) -> Iterator[None]:
    """Whatever breaks on the way is worth another try."""
    try:
        yield
    except (aiohttp.ClientError, OSError, ValueError) as error:
        cause = str(error) or type(error).__name__
        raise TransientError(f"{call.line}: the API server cannot be reached: {cause}") from error


def refusal(call: Call, response: aiohttp.ClientResponse, body: bytes) -> ClusterError:
    try:
        said = json.loads(body)
        message, reason = said["message"], said.get("reason", "")
        causes = _causes(said)
    except (ValueError, TypeError, KeyError):  # a proxy's words, not the API server's
        text = body[:_SHOWN].decode(errors="replace").strip()
        message, reason = f"{call.line}: {response.status} {response.reason}: {text}", ""
        causes = ()
    wait = response.headers.get("Retry-After", "")
    retry_after = float(wait) if wait.isdecimal() else None
    return cluster_error(
        response.status, message, reason=reason, retry_after=retry_after, causes=causes
    )


def _causes(said: Object) -> tuple[tuple[str, str], ...]:
    found = (said.get("details") or {}).get("causes") or ()
    return tuple((one.get("field", ""), one.get("message", "")) for one in found)


async def events(
    call: Call, response: aiohttp.ClientResponse, breath: float = 0.0
) -> AsyncGenerator[Object]:
    """Splits lines of any size: aiohttp's own readline has a limit that a large pod exceeds.

    With a `breath`, reading rests so many seconds after each gulp, and what arrives meanwhile
    comes with the next. The first event after a silence never waits.
    """
    begun: list[bytes] = []
    with reachable(call):
        while chunk := await response.content.readany():
            head, *following = chunk.split(b"\n")
            begun.append(head)
            for piece in following:
                yield _event(call, b"".join(begun))
                begun = [piece]
            if breath:
                await _rest(response, breath)
        if any(begun):
            raise aiohttp.ClientPayloadError("the stream was cut in the middle of an event")


async def _rest(response: aiohttp.ClientResponse, seconds: float) -> None:
    """Let the kernel collect: waking up for a beat costs ten times what its words cost."""
    _wake_at(response, _GULP)
    await asyncio.sleep(seconds)
    _wake_at(response, 1)


def _wake_at(response: aiohttp.ClientResponse, size: int) -> None:
    transport = response.connection.transport if response.connection else None
    found = transport.get_extra_info("socket") if transport else None
    if found is not None:
        with suppress(OSError):  # then every event wakes us, as it would without this
            found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)


def _event(call: Call, line: bytes) -> Object:
    event: Object = json.loads(line)
    if event["type"] != "ERROR":
        return event
    said = event["object"]
    message = said.get("message", f"{call.line}: the watch failed")
    raise cluster_error(said.get("code", 500), message, reason=said.get("reason", ""))
