"""Supervisors: see them, make them, steer them, and ask how they are."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from supervisor_api.access import Caller, Question
from supervisor_api.keeping import Kept, pack
from supervisor_api.models import (
    Change,
    NewSupervisor,
    RestartOrder,
    SupervisorOut,
    SupervisorPage,
    TeamsOfSupervisor,
)
from supervisor_api.routes import history
from supervisor_api.routes.shared import (
    ABSENT,
    CLASH,
    JSON,
    MADE,
    PROBLEMS,
    Choice,
    Finder,
    change,
    get_target,
    list_page,
    make,
    read_raw,
    remove,
    write,
)
from supervisor_api.service import Service, Target, TheCaller, TheService, read
from supervisor_operator.core.health.assess import assess
from supervisor_operator.core.health.report import HealthReport
from supervisor_operator.core.health.subject import Beat, Subject
from supervisor_operator.core.steer import Order, patch_for
from supervisor_operator.kube.cluster import HEARTBEATS, SUPERVISORS

ADDRESS = "/api/v1/supervisors"
TheTarget = Annotated[Target, Depends(get_target)]

finder = Finder(SUPERVISORS)
many = APIRouter(tags=["supervisors"], responses=PROBLEMS)
one = APIRouter(tags=["supervisors"], responses=PROBLEMS | ABSENT)
one.include_router(history.router)


@many.post(
    "/supervisors", status_code=201, response_model=SupervisorOut, responses=MADE | ABSENT | CLASH
)
async def create_supervisor(
    request: Request, service: TheService, caller: TheCaller, _body: NewSupervisor
) -> Response:
    """Make a Supervisor."""
    return await make(service, caller, SUPERVISORS, await read_raw(request), ADDRESS)


@many.get("/supervisors", response_model=SupervisorPage)
async def list_supervisors(
    service: TheService, caller: TheCaller, choice: Annotated[Choice, Depends()]
) -> Response:
    """Supervisors by namespace and name, page by page."""
    return await list_page(service, caller, SUPERVISORS, choice)


@one.get("", response_model=SupervisorOut)
async def get_supervisor(service: TheService, caller: TheCaller, target: TheTarget) -> Response:
    """One Supervisor."""
    return Response((await read(service, caller, target)).shown, media_type=JSON)


@one.patch("", response_model=SupervisorOut, responses=CLASH)
async def change_supervisor(
    request: Request, service: TheService, caller: TheCaller, target: TheTarget, _body: Change
) -> Response:
    """Change labels and spec."""
    return await change(service, caller, target, await read_raw(request))


@one.delete("", status_code=204, responses=CLASH)
async def delete_supervisor(caller: TheCaller, target: TheTarget) -> Response:
    """Remove a Supervisor and its agent."""
    return await remove(caller, target)


@one.get("/health", response_model=HealthReport)
async def get_health(service: TheService, caller: TheCaller, target: TheTarget) -> Response:
    """How well it is, why, and what to do now."""
    kept = await read(service, caller, target)
    beat = await _beat(service, caller, kept)
    report = assess(Subject.of(kept.item), service.wall(), beat)
    return Response(report.model_dump_json(by_alias=True, exclude_none=True), media_type=JSON)


@one.get("/teams", response_model=TeamsOfSupervisor)
async def get_teams(service: TheService, caller: TheCaller, target: TheTarget) -> Response:
    """The teams that it leads."""
    kept = await read(service, caller, target)
    status = kept.content["status"]
    found = {
        "id": kept.uid,
        "status": status.get("phase"),
        "teams": status.get("teams") or [],
        "totalTeams": status.get("totalTeams") or 0,
        "totalMembers": status.get("totalMembers") or 0,
    }
    return Response(pack(found), media_type=JSON)


@one.post("/start", response_model=SupervisorOut, responses=CLASH)
async def start(service: TheService, caller: TheCaller, target: TheTarget) -> Response:
    """Run it: operatingMode Running."""
    return await _steer(service, caller, target, Order.START)


@one.post("/stop", response_model=SupervisorOut, responses=CLASH)
async def stop(service: TheService, caller: TheCaller, target: TheTarget) -> Response:
    """End its pod: operatingMode Stopped."""
    return await _steer(service, caller, target, Order.STOP)


@one.post("/pause", response_model=SupervisorOut, responses=CLASH)
async def pause(service: TheService, caller: TheCaller, target: TheTarget) -> Response:
    """Judge and restart nothing: operatingMode Paused."""
    return await _steer(service, caller, target, Order.PAUSE)


@one.post("/resume", response_model=SupervisorOut, responses=CLASH)
async def resume(service: TheService, caller: TheCaller, target: TheTarget) -> Response:
    """Judge again: operatingMode Running."""
    return await _steer(service, caller, target, Order.RESUME)


@one.post("/restart", response_model=SupervisorOut, responses=CLASH)
async def restart(
    service: TheService, caller: TheCaller, target: TheTarget, body: RestartOrder | None = None
) -> Response:
    """Replace its pod, outside the budget; asked twice of the same run it happens once."""
    request = body.request if body else ""
    return await _steer(service, caller, target, Order.RESTART, request)


async def _steer(
    service: Service, caller: Caller, target: Target, order: Order, request: str = ""
) -> Response:
    run = 0
    if order is Order.RESTART and not request:
        item = await caller.cluster.get(SUPERVISORS, target.namespace, target.name)
        run = (item.get("status") or {}).get("run") or 0
    patch = patch_for(order, run, service.wall(), request)
    return await write(service, caller, target, patch | {"metadata": target.precondition})


async def _beat(service: Service, caller: Caller, kept: Kept) -> Beat | None:
    """The live beat of the newest pod, for those who may read Heartbeats."""
    status = kept.content["status"]
    beat = service.index.beats.get((kept.key[0], status.get("podName") or ""))
    if beat is None or beat.pod_uid != status.get("podUID"):
        return None
    question = Question("get", HEARTBEATS, kept.key[0])
    return beat if await service.access.allows(caller, question) else None
