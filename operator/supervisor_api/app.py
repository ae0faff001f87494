"""The application: its routes, its limits, its errors, and the document that describes them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from typing_extensions import override

from supervisor_api.limits import BodyLimit, SecurityHeaders
from supervisor_api.problems import MEDIA_TYPE, add_problem_handlers, answer_cluster
from supervisor_api.routes import page, stream, supervisors, teams
from supervisor_api.service import Service, TheService
from supervisor_operator.errors import UnauthorizedError
from supervisor_operator.settings import version

PREFIX = "/api/v1"
TITLE = "supervisor-operator management API"
WORDS = (
    "See and steer supervised agents. Every call acts with the caller's own Kubernetes token:"
    " what that token may not do is refused in the API server's words."
)
REFUSED = 400
METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}


class ManagementApi(FastAPI):
    @override
    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = _describe(self)
        return self.openapi_schema


def create_app(service: Service) -> FastAPI:
    app = ManagementApi(
        title=TITLE,
        version=version(),
        description=WORDS,
        openapi_url=f"{PREFIX}/openapi.json",
        # Their pages load scripts from strangers' hosts.
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=_operation_id,
        redirect_slashes=False,
    )
    app.state.service = service
    app.include_router(_routes(), prefix=PREFIX)
    app.include_router(_probes())
    app.include_router(page.router)
    add_problem_handlers(app)
    app.add_exception_handler(UnauthorizedError, _answer_stranger)
    app.add_middleware(BodyLimit, limit=service.settings.max_body_bytes)
    app.add_middleware(SecurityHeaders)
    return app


def _routes() -> APIRouter:
    router = APIRouter()
    for kind, plural in ((supervisors, "supervisors"), (teams, "teams")):
        router.include_router(kind.many)
        by_uid, by_name = Depends(kind.finder.by_uid), Depends(kind.finder.by_name)
        router.include_router(kind.one, prefix=f"/{plural}/{{id}}", dependencies=[by_uid])
        named = f"/namespaces/{{namespace}}/{plural}/{{name}}"
        router.include_router(kind.one, prefix=named, dependencies=[by_name])
    router.include_router(stream.router)
    return router


def _probes() -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/healthz")
    async def healthz() -> Response:
        return Response("ok", media_type="text/plain")

    @router.get("/readyz")
    async def readyz(service: TheService) -> Response:
        why = service.index.unwell()
        return Response(why or "ok", 503 if why else 200, media_type="text/plain")

    return router


async def _answer_stranger(request: Request, error: Exception) -> Response:
    """A token that the API server does not know stays a newcomer, however often it comes."""
    service: Service = request.app.state.service
    service.rate.forget(request.state.caller.digest)
    return await answer_cluster(request, error)


def _operation_id(route: APIRoute) -> str:
    return f"{route.name}_by_name" if "{namespace}" in route.path else route.name


def _describe(app: FastAPI) -> dict[str, Any]:
    found = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    for path in found["paths"].values():
        for method in METHODS & path.keys():
            _name_problems(path[method]["responses"])
    return found


def _name_problems(responses: dict[str, Any]) -> None:
    """Refusals have a media type of their own, for which FastAPI has no word."""
    for status, response in responses.items():
        content = response.get("content", {})
        if int(status) >= REFUSED and "application/json" in content:
            content[MEDIA_TYPE] = content.pop("application/json")
