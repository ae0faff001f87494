"""One request to the API server, in the words of RBAC: verb, resource, name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from yarl import URL

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_MUTATING = {*_VERBS.values(), "deletecollection"}
_STORE_NOTHING = {"authentication.k8s.io", "authorization.k8s.io"}
_OF_NAMESPACES = {"status", "finalize"}
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(frozen=True, slots=True)
class Call:
    """Plural is empty for what is no resource: /version, discovery, OpenAPI."""

    verb: str
    path: str
    user_agent: str
    group: str = ""
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    revision: str = ""
    dry_run: bool = False

    @property
    def is_write(self) -> bool:
        stored = not self.dry_run and self.group not in _STORE_NOTHING
        return self.verb in _MUTATING and stored


def read_call(method: str, url: URL, user_agent: str) -> Call:
    group, rest = _split(url.path.strip("/").split("/"))
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] not in _OF_NAMESPACES:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = [*rest, "", "", ""][:3]
    return Call(
        verb=_verb(method, url, is_one=bool(name) or not plural),
        path=url.path,
        user_agent=user_agent,
        group=group,
        plural=plural,
        namespace=namespace,
        name=name,
        subresource=subresource,
        revision=url.query.get("resourceVersion", ""),
        dry_run="dryRun" in url.query,
    )


def _split(parts: Sequence[str]) -> tuple[str, list[str]]:
    match parts:
        case ["api", _, *rest]:
            return "", rest
        case ["apis", group, _, *rest]:
            return group, rest
        case _:
            return "", []


def _verb(method: str, url: URL, *, is_one: bool) -> str:
    if method == "GET":
        if url.query.get("watch") in ("true", "1"):
            return "watch"
        return "get" if is_one else "list"
    if method == "DELETE" and not is_one:
        return "deletecollection"
    return _VERBS.get(method, method.lower())


def status_object(code: int, message: str) -> dict[str, Any]:
    """What the API server says when it refuses."""
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS.get(code, ""),
        "code": code,
    }
