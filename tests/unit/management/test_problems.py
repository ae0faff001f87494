"""What the API server refuses, and what is wrong with a request, in the words of a problem."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request

from supervisor_api.app import create_app
from supervisor_api.problems import (
    MEDIA_TYPE,
    ProblemError,
    add_problem_handlers,
    cluster_problem,
    field_error,
    respond,
)
from supervisor_operator.errors import ClusterError, cluster_error
from tests.support.management import bare_service

QUOTA = 'supervisors "a" is forbidden: exceeded quota: few, requested: count/supervisors=1'


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (cluster_error(400, "no such verb"), 422, "Correct the fields"),
        (cluster_error(401, "Unauthorized"), 401, "kubectl create token"),
        (cluster_error(403, QUOTA, reason="Forbidden"), 403, "more quota"),
        (cluster_error(404, "not found"), 404, "GET /api/v1/supervisors"),
        (cluster_error(409, "changed", reason="Conflict"), 409, "Read the object again"),
        (cluster_error(410, "gone"), 410, "the words of the API server"),
        (cluster_error(422, "is invalid"), 422, "Correct the fields"),
        (cluster_error(429, "slow down", retry_after=7), 429, "Try again"),
        (cluster_error(500, "etcd"), 503, "Try again"),
        (cluster_error(504, "timeout"), 503, "Try again"),
        (ClusterError("refused without a status"), 503, "the words of the API server"),
        (cluster_error(418, "a proxy's joke"), 418, "the words of the API server"),
        (cluster_error(460, "a proxy's own number"), 502, "the words of the API server"),
    ],
    ids=lambda one: str(one)[:20],
)
def test_what_the_api_server_refuses(error: ClusterError, status: int, said: str) -> None:
    problem, headers = cluster_problem(error)
    assert (problem.status, problem.detail) == (status, str(error))
    assert said in str(problem.fix)
    assert ("Retry-After" in headers) == (status in {429, 503})
    if error.retry_after:
        assert headers["Retry-After"] == "7"


def test_fields_that_the_api_server_names_are_named() -> None:
    causes = (("spec.agent", "set exactly one"), ("", "and something at large"))
    problem, _ = cluster_problem(cluster_error(422, "is invalid", causes=causes))
    assert problem.errors
    assert [(one.field, one.fix) for one in problem.errors] == [("spec.agent", "set exactly one")]


def test_a_value_is_shown_shortened_and_never_breaks_the_answer() -> None:
    error = field_error("body.name", "\ud800" + "x" * 500, "a name")
    answer = respond(error.problem)
    found: Any = json.loads(bytes(answer.body))
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert (found["status"], found["errors"][0]["field"]) == (422, "body.name")
    assert len(found["errors"][0]["value"]) < 130


async def answered(error: Exception) -> Any:
    app = FastAPI()
    add_problem_handlers(app)
    kinds = [kind for kind in type(error).mro() if kind in app.exception_handlers]
    handler: Any = app.exception_handlers[kinds[0]]
    scope = {"type": "http", "method": "GET", "path": "/a\nb", "headers": [], "query_string": b""}
    return json.loads((await handler(Request(scope), error)).body)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ProblemError(413, "too long", "send less"), 413),
        (cluster_error(403, "no"), 403),
        (RequestValidationError([{"loc": ("body", "a"), "type": "missing", "msg": "is due"}]), 422),
        (RecursionError("maximum recursion depth exceeded"), 422),
        (ZeroDivisionError("division by zero"), 500),
    ],
    ids=lambda one: type(one).__name__,
)
async def test_every_error_is_a_problem_with_a_fix(error: Exception, status: int) -> None:
    found = await answered(error)
    assert (found["status"], bool(found["fix"])) == (status, True)


async def test_a_bug_tells_its_story_to_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    found = await answered(ZeroDivisionError("with secrets"))
    assert "secrets" not in json.dumps(found)
    assert "with secrets" in caplog.text
    assert "/a\nb" not in caplog.text, "a path is a caller's words: no line of its own in the log"


def test_the_document_is_whole_enough_for_generated_clients() -> None:
    document = create_app(bare_service()).openapi()
    schemes = document["components"]["securitySchemes"]
    assert [one["scheme"] for one in schemes.values()] == ["bearer"]
    seen = set()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            where = f"{method} {path}"
            assert operation["operationId"] not in seen, where
            seen.add(operation["operationId"])
            assert operation["summary"], where
            assert operation["description"], where
            assert operation["security"] == [{name: []} for name in schemes], where
            assert {"401", "403", "422", "429", "503"} <= operation["responses"].keys(), where
            assert ("404" in operation["responses"]) or "{" not in path, where
            for status, answer in operation["responses"].items():
                media = set(answer.get("content", {}))
                if int(status) >= 400:
                    assert media == {MEDIA_TYPE}, where
                    assert answer["content"][MEDIA_TYPE]["schema"], where
                elif status not in {"204", "304"}:
                    assert len(media) == 1, where
                assert answer["description"], where
            made = operation["responses"].get("201", {}).get("headers", {})
            assert ("Location" in made) == (operation["operationId"].startswith("create_")), where
            for parameter in operation.get("parameters", []):
                described = parameter.get("description") or parameter["in"] == "header"
                assert described, (where, parameter["name"])
