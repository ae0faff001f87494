"""Teams: see them, make them, and who is in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response

from supervisor_api.access import Caller
from supervisor_api.keeping import pack
from supervisor_api.models import Change, Members, NewMember, NewTeam, TeamOut, TeamPage
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
)
from supervisor_api.service import Service, Target, TheCaller, TheService, read
from supervisor_operator.errors import ConflictError, NotFoundError
from supervisor_operator.kube.cluster import TEAMS

ADDRESS = "/api/v1/teams"
TRIES = 5
TheTarget = Annotated[Target, Depends(get_target)]
MemberName = Annotated[
    str,
    Path(
        description="Name of the member",
        min_length=1,
        max_length=63,
        pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    ),
]
Entries = list[dict[str, Any]]

finder = Finder(TEAMS)
many = APIRouter(tags=["teams"], responses=PROBLEMS)
one = APIRouter(tags=["teams"], responses=PROBLEMS | ABSENT)


@many.post("/teams", status_code=201, response_model=TeamOut, responses=MADE | ABSENT | CLASH)
async def create_team(
    request: Request, service: TheService, caller: TheCaller, _body: NewTeam
) -> Response:
    """Make a team."""
    return await make(service, caller, TEAMS, await read_raw(request), ADDRESS)


@many.get("/teams", response_model=TeamPage)
async def list_teams(
    service: TheService, caller: TheCaller, choice: Annotated[Choice, Depends()]
) -> Response:
    """Teams by namespace and name, page by page."""
    return await list_page(service, caller, TEAMS, choice)


@one.get("", response_model=TeamOut)
async def get_team(service: TheService, caller: TheCaller, target: TheTarget) -> Response:
    """One team."""
    return Response((await read(service, caller, target)).shown, media_type=JSON)


@one.patch("", response_model=TeamOut, responses=CLASH)
async def change_team(
    request: Request, service: TheService, caller: TheCaller, target: TheTarget, _body: Change
) -> Response:
    """Change labels and spec."""
    return await change(service, caller, target, await read_raw(request))


@one.delete("", status_code=204, responses=CLASH)
async def delete_team(caller: TheCaller, target: TheTarget) -> Response:
    """Remove a team and the agents of its own."""
    return await remove(caller, target)


@one.get("/members", response_model=Members)
async def get_members(service: TheService, caller: TheCaller, target: TheTarget) -> Response:
    """Who is in it, and who was, with the times."""
    stays = (await read(service, caller, target)).content["status"].get("members") or []
    found = {
        "members": [stay for stay in stays if not stay.get("leftAt")],
        "left": [stay for stay in stays if stay.get("leftAt")],
    }
    return Response(pack(found), media_type=JSON)


@one.post("/members", status_code=201, response_model=TeamOut, responses=CLASH)
async def add_member(
    request: Request, service: TheService, caller: TheCaller, target: TheTarget, body: NewMember
) -> Response:
    """Add a member at the end: an agent of the team's own, or an existing one by ref."""
    raw = await read_raw(request)

    def add(entries: Entries) -> Entries:
        if any(entry["name"] == body.name for entry in entries):
            words = f"team {target.name} has a member {body.name} already"
            raise ConflictError(words, status=409, reason="AlreadyExists")
        return [*entries, raw]

    return await _edit_members(service, caller, target, add, 201)


@one.delete("/members/{member}", response_model=TeamOut, responses=CLASH)
async def remove_member(
    service: TheService, caller: TheCaller, target: TheTarget, member: MemberName
) -> Response:
    """Take a member off the list; its agents leave, and the time is kept."""

    def drop(entries: Entries) -> Entries:
        left = [entry for entry in entries if entry["name"] != member]
        if len(left) == len(entries):
            words = f"team {target.name} has no member {member}"
            raise NotFoundError(words, status=404, reason="NotFound")
        return left

    return await _edit_members(service, caller, target, drop, 200)


async def _edit_members(
    service: Service,
    caller: Caller,
    target: Target,
    edit: Callable[[Entries], Entries],
    status: int,
) -> Response:
    """Of the list as it is now: where somebody else writes in between, it is read again."""
    cluster, namespace, name = caller.cluster, target.namespace, target.name
    for tried in range(1, TRIES + 1):
        item = await cluster.get(TEAMS, namespace, name)
        metadata = {"resourceVersion": item["metadata"]["resourceVersion"]} | target.precondition
        members = edit(item["spec"].get("members") or [])
        patch = {"metadata": metadata, "spec": {"members": members}}
        try:
            changed = await cluster.merge(TEAMS, namespace, name, patch, strict=True)
        except ConflictError:
            if tried == TRIES:
                raise
            continue
        return Response(service.index.put(TEAMS, changed).shown, status, media_type=JSON)
    raise AssertionError("the last try raises")
