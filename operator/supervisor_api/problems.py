"""Every error as application/problem+json: what happened, which field, what to do now."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from supervisor_api.models import FieldProblem, Problem
from supervisor_operator.errors import (
    ClusterError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    TransientError,
    UnauthorizedError,
)

MEDIA_TYPE = "application/problem+json"
SHOWN = 120

_log = logging.getLogger(__name__)

FIXES: dict[type[ClusterError], tuple[int, str]] = {
    InvalidError: (422, "Correct the fields that are named and send it again."),
    UnauthorizedError: (401, "Send a token that the API server accepts: kubectl create token NAME"),
    ForbiddenError: (403, "Ask for this right, or for more quota where the words name one."),
    NotFoundError: (404, "Look for it with GET /api/v1/supervisors or /api/v1/teams."),
    ConflictError: (409, "Read the object again and repeat the change on what is there now."),
    TransientError: (
        503,
        "Try again in a moment; GET /readyz tells whether that may help.",
    ),
}
TOO_MANY = 429


class ProblemError(Exception):
    def __init__(
        self,
        status: int,
        detail: str,
        fix: str,
        *,
        errors: list[FieldProblem] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.headers = dict(headers or {})
        self.problem = Problem(
            title=HTTPStatus(status).phrase, status=status, detail=detail, fix=fix, errors=errors
        )


def field_error(field: str, value: object, fix: str) -> ProblemError:
    found = FieldProblem(field=field, value=shorten(value), fix=fix)
    return ProblemError(422, f"{field}: {shorten(value)}: {fix}", fix, errors=[found])


def shorten(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def add_problem_handlers(app: FastAPI) -> None:
    app.add_exception_handler(ProblemError, _answer_problem)
    app.add_exception_handler(ClusterError, answer_cluster)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(RecursionError, _answer_deep)
    app.add_exception_handler(Exception, _answer_bug)


def respond(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    content = problem.model_dump(by_alias=True, exclude_none=True)
    # Escaped, since a value may be no valid Unicode.
    body = json.dumps(content).encode()
    extra = dict(headers or {})
    if problem.status == HTTPStatus.UNAUTHORIZED:
        extra["WWW-Authenticate"] = "Bearer"
    return Response(body, problem.status, extra, MEDIA_TYPE)


def cluster_problem(error: ClusterError) -> tuple[Problem, dict[str, str]]:
    kinds = (found for kind, found in FIXES.items() if isinstance(error, kind))
    status, fix = next(kinds, (_known(error.status), "Read the words of the API server."))
    if error.status == TOO_MANY:
        status = TOO_MANY
    causes = [FieldProblem(field=field, fix=message) for field, message in error.causes if field]
    wait = {"Retry-After": str(int(error.retry_after or 1))} if status in {429, 503} else {}
    return Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=str(error),
        reason=error.reason or None,
        fix=fix,
        errors=causes or None,
    ), wait


def _known(status: int | None) -> int:
    """A number that only a proxy knows is its fault."""
    if status is None:
        return 503
    return status if status in HTTPStatus.__members__.values() else 502


async def _answer_problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)  # noqa: S101 - for the type; starlette chose by it
    return respond(error.problem, error.headers)


async def answer_cluster(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ClusterError)  # noqa: S101 - likewise
    return respond(*cluster_problem(error))


async def _answer_invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - likewise
    errors = [_field(one) for one in error.errors()]
    detail = "; ".join(f"{one.field}: {one.fix}" for one in errors)
    fix = "Correct the fields that are named and send it again."
    return respond(
        Problem(
            title=HTTPStatus(422).phrase, status=422, detail=detail, fix=fix, errors=errors or None
        )
    )


async def _answer_http(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - likewise
    if error.status_code == HTTPStatus.BAD_REQUEST:  # FastAPI's word for a body that is no text
        return respond(field_error("body", "", "JSON in UTF-8 is expected").problem)
    title = HTTPStatus(error.status_code).phrase
    fix = "GET /api/v1/openapi.json names every address and method."
    problem = Problem(title=title, status=error.status_code, detail=str(error.detail), fix=fix)
    return respond(problem, error.headers)


async def _answer_deep(_request: Request, _error: Exception) -> Response:
    return respond(field_error("body", "…", "nest it less deeply").problem)


async def _answer_bug(request: Request, error: Exception) -> Response:
    _log.error("%s %r failed", request.method, request.url.path, exc_info=error)
    fix = "This is a bug: please report it with the log of the management API."
    return respond(
        Problem(title="Internal Server Error", status=500, detail="see the log", fix=fix)
    )


def _field(error: Mapping[str, Any]) -> FieldProblem:
    where = ".".join(str(part) for part in error["loc"])
    value = error.get("input")
    shown = None if error["type"] == "missing" else shorten(value)
    return FieldProblem(field=where, value=shown, fix=error["msg"])
