"""What became of one Supervisor: its beats, its Events, and the object itself as YAML."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Annotated, Any

import yaml
from fastapi import APIRouter, Depends, Response

from supervisor_api.access import Question
from supervisor_api.models import Beats, BeatSeen, EventSeen, Story
from supervisor_api.rhythm import SHOWN, Run, missed, run_of
from supervisor_api.routes.shared import ABSENT, JSON, PROBLEMS, get_target
from supervisor_api.service import Target, TheCaller, TheService, read
from supervisor_operator.api.v1alpha1.policies import HeartbeatSource
from supervisor_operator.core.health.subject import Subject
from supervisor_operator.core.template import pod_name
from supervisor_operator.kube.cluster import HEARTBEATS, SUPERVISORS, Object

YAML = "application/yaml"
TOLD = 200
TheTarget = Annotated[Target, Depends(get_target)]

router = APIRouter(tags=["supervisors"], responses=PROBLEMS | ABSENT)


@router.get("/beats", response_model=Beats)
async def get_beats(service: TheService, caller: TheCaller, target: TheTarget) -> Response:
    """Its latest beats and those that were missed, since the API runs."""
    kept = await read(service, caller, target)
    await service.access.require(caller, Question("get", HEARTBEATS, target.namespace))
    subject, now = Subject.of(kept.item), service.wall()
    policy = subject.spec.heartbeat
    if policy.source is HeartbeatSource.NONE or subject.spec.agent is None:
        return _answer(Beats(now=now, since=now))
    interval = timedelta(seconds=policy.interval_seconds)
    since = now - SHOWN * interval
    strokes = service.index.rhythm.of(kept.key)
    found = Beats(
        now=now,
        since=since,
        interval_seconds=policy.interval_seconds,
        allowed=policy.missed_threshold,
        beats=[
            BeatSeen(time=one.time, pod=pod_name(subject.name, one.run))
            for one in strokes
            if one.time >= since
        ],
        missed=[due for due in missed(strokes, interval, _runs(subject, now)) if due >= since],
    )
    return _answer(found)


@router.get("/story", response_model=Story)
async def get_story(service: TheService, caller: TheCaller, target: TheTarget) -> Response:
    """The Events about it and its newest pod, the latest first, for those who may list them."""
    kept = await read(service, caller, target)
    status = kept.content["status"]
    uids = [uid for uid in (kept.uid, status.get("podUID")) if uid]
    asked = (caller.cluster.events_about(target.namespace, uid) for uid in uids)
    lists = await asyncio.gather(*asked)
    told = sorted((_told(item) for items in lists for item in items), key=_when, reverse=True)
    return _answer(Story(events=told[:TOLD]))


@router.get(
    "/yaml",
    response_class=Response,
    responses={200: {"content": {YAML: {"schema": {}}}}},
)
async def get_yaml(caller: TheCaller, service: TheService, target: TheTarget) -> Response:
    """The object as the API server has it, without who manages which field."""
    await read(service, caller, target)
    item = await caller.cluster.get(SUPERVISORS, target.namespace, target.name)
    item["metadata"].pop("managedFields", None)
    text = yaml.safe_dump(item, sort_keys=False, allow_unicode=True)
    return Response(text, media_type=YAML)


def _answer(found: Beats | Story) -> Response:
    return Response(found.model_dump_json(by_alias=True, exclude_none=True), media_type=JSON)


def _runs(subject: Subject, now: datetime) -> list[Run]:
    status = subject.status
    end = status.last_termination
    ended = (
        [Run(run_of(end.pod_name), end.finished_at)]
        if end and end.pod_name and end.finished_at
        else []
    )
    return [*ended, Run(status.run or 0, now)]


def _told(item: Object) -> EventSeen:
    series: dict[str, Any] = item.get("series") or {}
    about = item.get("regarding") or {}
    when = series.get("lastObservedTime") or item.get("eventTime")
    return EventSeen(
        # The kubelet still writes Events of the older kind.
        time=when or item.get("deprecatedLastTimestamp") or item["metadata"]["creationTimestamp"],
        type=item.get("type") or "Normal",
        reason=item.get("reason") or "",
        note=item.get("note") or "",
        about=f"{about.get('kind', '')} {about.get('name', '')}",
        count=series.get("count") or item.get("deprecatedCount") or 1,
    )


def _when(one: EventSeen) -> datetime:
    return one.time
