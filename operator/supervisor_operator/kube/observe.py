"""OBSERVE: the first stage of a pass. Everything known about one Supervisor, frozen."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from supervisor_operator.api.v1alpha1.meta import Health
from supervisor_operator.api.v1alpha1.supervisor import SupervisorSpec
from supervisor_operator.api.v1alpha1.supervisor_status import SupervisorStatus
from supervisor_operator.core.heartbeat import allowed_silence
from supervisor_operator.core.observed import (
    BeatColumn,
    BeatLeftover,
    BeatView,
    Now,
    Observed,
    PodView,
    Sightings,
)
from supervisor_operator.core.tree import strictest
from supervisor_operator.kube.beats import BeatBook
from supervisor_operator.kube.cluster import Object
from supervisor_operator.kube.family import Family
from supervisor_operator.kube.heartbeats import BeatObject
from supervisor_operator.kube.specs import Specs
from supervisor_operator.kube.store import Store
from supervisor_operator.kube.storm import StormWatch
from supervisor_operator.kube.teams import Teams
from supervisor_operator.kube.times import PodTimes


@dataclass(frozen=True, slots=True)
class World:
    """All that the operator knows of the cluster, kept up to date by the watches."""

    pods: Store[PodView]
    heartbeats: Store[BeatObject]
    beats: BeatBook
    times: PodTimes
    storm: StormWatch
    family: Family
    teams: Teams
    specs: Specs


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What does not come from the objects themselves."""

    policy_present: bool
    relay_image: str
    node_grace_seconds: float
    beat_column: BeatColumn = BeatColumn.KEEP


def observe(
    world: World, item: Object, now: Now, around: Surroundings, *, confirmed: bool = False
) -> Observed:
    metadata = item["metadata"]
    read, status = world.specs.read(item["spec"]), _status(item)
    spec = read.spec
    pods = by_run(world.pods.of(metadata["uid"]))
    newest = pods[-1] if pods else None
    beat = world.beats.view(newest.uid, now.mono, confirmed=confirmed) if newest else None
    key = (metadata["namespace"], metadata["name"])
    link = world.teams.link(item, now.wall)
    mode = world.family.mode(key, spec.operating_mode)
    return Observed(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 0),
        spec=spec,
        template_hash=read.template_hash,
        status=status,
        mode=strictest([mode, link.mode]) if link else mode,
        pods=pods,
        sightings=world.times.sightings(newest.uid, now.mono) if newest else Sightings(),
        beat=beat,
        beat_leftovers=_leftovers(world, pods),
        policy_present=around.policy_present,
        storm=world.storm.is_on(
            metadata["namespace"], now.mono, in_earnest=_may_be_judged(spec, status, beat)
        ),
        node_grace_seconds=around.node_grace_seconds,
        relay_image=around.relay_image,
        beat_column=around.beat_column,
        team=link,
        teams=world.teams.led_by(key),
        tree=world.family.tree(key),
        invalid=read.invalid,
    )


def _may_be_judged(spec: SupervisorSpec, status: SupervisorStatus, beat: BeatView | None) -> bool:
    if beat is None or beat.silence is None or status.health is not Health.HEALTHY:
        return True
    return beat.silence >= allowed_silence(spec.heartbeat, None)


def by_run(pods: tuple[PodView, ...]) -> tuple[PodView, ...]:
    return tuple(sorted(pods, key=lambda pod: pod.run)) if len(pods) > 1 else pods


def _leftovers(world: World, pods: tuple[PodView, ...]) -> tuple[BeatLeftover, ...]:
    finished = (pod for pod in pods if pod.finished)
    return tuple(
        BeatLeftover(found.name, found.uid)
        for pod in finished
        if (found := world.heartbeats.get((pod.namespace, pod.name))) and found.pod_uid == pod.uid
    )


def _status(item: Object) -> SupervisorStatus:
    """One that cannot be read counts as wiped."""
    try:
        return SupervisorStatus.model_validate(item["status"])
    except ValidationError:
        return SupervisorStatus()
