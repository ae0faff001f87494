"""Actions carried out: what the API server refuses is told or tried again, never forced."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from supervisor_operator.api.v1alpha1.meta import GROUP, OperatingMode
from supervisor_operator.api.v1alpha1.supervisor import SupervisorSpec
from supervisor_operator.api.v1alpha1.supervisor_status import SupervisorStatus
from supervisor_operator.core.actions import (
    CreateHeartbeat,
    CreatePod,
    DeleteHeartbeat,
    DeletePod,
    KillPod,
    TryPod,
)
from supervisor_operator.core.ledger import Ledger
from supervisor_operator.core.observed import Observed, PodView, Refusal, RefusalKind
from supervisor_operator.core.pods import view_pod
from supervisor_operator.core.template import build_pod
from supervisor_operator.core.words import Mark, RunReason
from supervisor_operator.errors import (
    ClusterError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    TransientError,
)
from supervisor_operator.kube.apply import Applier
from supervisor_operator.kube.beats import BeatBook
from supervisor_operator.kube.cluster import HEARTBEATS, PODS, ROLES, Object
from supervisor_operator.kube.rights import NAME, BeatRights
from supervisor_operator.kube.store import Store
from tests.support.builders import AGENT
from tests.support.fake_cluster import FakeCluster

pytestmark = pytest.mark.looptime

US = "uid-of-hello"
OBSERVED = Observed(
    name="hello",
    namespace="default",
    uid=US,
    generation=1,
    spec=SupervisorSpec.model_validate({"agent": AGENT}),
    status=SupervisorStatus(),
    mode=OperatingMode.RUNNING,
    template_hash="abc",
    relay_image="localhost/relay:1",
)
MANIFEST = build_pod(OBSERVED, Ledger(run=1), RunReason.FIRST)
CREATE = CreatePod(MANIFEST, "first run", beats=True)
PLAIN = CreatePod(MANIFEST, "first run", beats=False)
FORBIDDEN = ForbiddenError("exceeded quota: tight", status=403)
INVALID = InvalidError("spec.containers[0].image: Required value", status=422)


def an_owner(uid: str, name: str = "hello", kind: str = "Supervisor") -> Object:
    version = "v1" if kind == "Pod" else f"{GROUP}/v1alpha1"
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}


@dataclass(slots=True)
class World:
    cluster: FakeCluster = field(default_factory=FakeCluster)
    pods: Store[PodView] = field(default_factory=lambda: Store(view_pod, lambda pod: pod.owner))
    beats: BeatBook = field(default_factory=lambda: BeatBook(lambda: 0.0))
    done: list[str] = field(default_factory=list)
    applier: Applier = field(init=False)

    def __post_init__(self) -> None:
        rights = BeatRights(self.cluster)
        self.applier = Applier(
            self.cluster,
            self.pods,
            self.beats,
            rights,
            lambda observed, action: self.done.append(f"{observed.name}: {action.reason}"),
        )

    async def apply(self, action: Any) -> Refusal | None:
        return await self.applier.apply(OBSERVED, action)

    def stands(self, **metadata: Any) -> PodView:
        """A pod called hello-r1 is there already, ours unless said otherwise."""
        item = {**MANIFEST, "metadata": MANIFEST["metadata"] | metadata}
        return view_pod(self.cluster.add(PODS, item))

    def changes(self, patch: Object) -> None:
        self.cluster.change(PODS, "default", "hello-r1", patch)

    @property
    def pod(self) -> Object:
        return self.cluster.objects["pods", "default", "hello-r1"]

    @property
    def heartbeat(self) -> Object:
        return self.cluster.objects["heartbeats", "default", "hello-r1"]

    def writes(self) -> list[tuple[str, str]]:
        return [(verb, plural) for verb, plural, _ in self.cluster.calls if verb != "get"]


@pytest.fixture
def world() -> World:
    return World()


def is_refused(refusal: Refusal | None, kind: RefusalKind, words: str) -> bool:
    return refusal is not None and refusal.kind is kind and words in refusal.message


async def test_a_run_is_a_pod_its_heartbeat_and_the_right_to_beat(world: World) -> None:
    assert await world.apply(CREATE) is None
    assert world.heartbeat["spec"]["podUID"] == world.pod["metadata"]["uid"]
    assert ("roles", "default", NAME) in world.cluster.objects
    assert [pod.name for pod in world.pods.of(US)] == ["hello-r1"]
    assert world.beats.view(world.pod["metadata"]["uid"], 0.0)
    assert world.done == ["hello: first run"]


async def test_a_run_without_heartbeats_costs_one_request(world: World) -> None:
    assert await world.apply(PLAIN) is None
    assert world.cluster.calls == [("create", "pods", "hello-r1")]


async def test_our_own_pod_after_a_lost_answer_is_as_good_as_created(world: World) -> None:
    world.cluster.fail("create", PODS, TransientError("connection reset"), after=True)
    with pytest.raises(TransientError):
        await world.apply(CREATE)
    assert world.done == []
    assert await world.apply(CREATE) is None
    assert [pod.name for pod in world.pods.of(US)] == ["hello-r1"]
    assert world.heartbeat


@pytest.mark.parametrize(
    "metadata",
    [
        {"ownerReferences": []},
        {"ownerReferences": [an_owner("uid-of-other", "other")]},
        {"labels": {}},
        {"labels": {"supervision.dev/run": "7"}},
    ],
    ids=["nobody's", "another's", "ours without a run", "ours of another run"],
)
async def test_a_stranger_under_that_name_is_told_and_left_alone(
    world: World, metadata: Object
) -> None:
    world.stands(**metadata)
    before = world.pod
    refusal = await world.apply(PLAIN)
    assert is_refused(refusal, RefusalKind.CONFLICT, "A pod hello-r1 that is not ours")
    assert world.pod == before
    assert len(world.pods) == 0
    assert world.done == []


async def test_a_pod_of_a_former_namesake_is_waited_for(world: World) -> None:
    world.stands(ownerReferences=[an_owner("uid-of-former")])
    with pytest.raises(TransientError, match="of the former hello is not gone yet"):
        await world.apply(PLAIN)


@pytest.mark.parametrize("owner", [US, "uid-of-former", "uid-of-other"])
async def test_a_pod_on_its_way_out_is_waited_for_whosever_it_is(world: World, owner: str) -> None:
    world.stands(deletionTimestamp="2026-01-01T00:00:00Z", ownerReferences=[an_owner(owner)])
    with pytest.raises(TransientError, match="not gone yet"):
        await world.apply(PLAIN)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (INVALID, RefusalKind.TEMPLATE, "image: Required value"),
        (FORBIDDEN, RefusalKind.CREATE, "Pod hello-r1 was refused: exceeded quota"),
    ],
    ids=["422", "403"],
)
async def test_a_refused_pod_is_told(
    world: World, error: ClusterError, kind: RefusalKind, words: str
) -> None:
    world.cluster.fail("create", PODS, error)
    assert is_refused(await world.apply(CREATE), kind, words)
    assert world.done == []


async def test_a_server_that_is_away_is_for_time_to_heal(world: World) -> None:
    world.cluster.fail("create", PODS, TransientError("503"))
    with pytest.raises(TransientError):
        await world.apply(CREATE)


async def test_a_pod_believed_gone_that_is_still_there_stops_the_next_run(world: World) -> None:
    world.stands()
    following = CreatePod(
        build_pod(OBSERVED, Ledger(run=2), RunReason.POD_LOST), "second run", False, "hello-r1"
    )
    with pytest.raises(TransientError, match="pod default/hello-r1 is still there"):
        await world.apply(following)
    assert world.writes() == []
    world.changes({"status": {"phase": "Failed"}})
    assert await world.apply(following) is None


async def test_a_pod_believed_gone_that_is_gone_costs_one_look(world: World) -> None:
    assert await world.apply(replace(PLAIN, believed_gone="hello-r0")) is None
    assert world.cluster.calls[0] == ("get", "pods", "hello-r0")


async def test_without_the_right_to_beat_no_pod_is_made(world: World) -> None:
    world.cluster.add(ROLES, {"metadata": {"name": NAME}, "rules": []})
    refusal = await world.apply(CREATE)
    assert is_refused(refusal, RefusalKind.RIGHTS, "with other content exists already")
    assert ("create", "pods") not in world.writes()


async def test_a_right_we_may_not_grant_is_told(world: World) -> None:
    world.cluster.fail("create", ROLES, ForbiddenError("attempting to grant more", status=403))
    refusal = await world.apply(CREATE)
    assert is_refused(refusal, RefusalKind.CREATE, "The right to beat was refused: attempting")
    assert ("create", "pods") not in world.writes()


async def test_a_new_template_is_tried_without_a_trace(world: World) -> None:
    action = TryPod(MANIFEST, "spec changed")
    assert await world.apply(action) is None
    world.cluster.fail("dry-run", PODS, INVALID)
    assert is_refused(await world.apply(action), RefusalKind.TEMPLATE, "Required value")
    world.cluster.fail("dry-run", PODS, FORBIDDEN)
    assert is_refused(await world.apply(action), RefusalKind.CREATE, "The new pod was refused")
    assert world.cluster.objects == {}
    world.stands()
    assert await world.apply(action) is None, "a name that is taken says nothing of the template"


@pytest.mark.parametrize(
    ("asked", "makes_room"),
    [("pods=1", True), ("count/pods=1,pods=1", True), ("cpu=2", False), ("cpu=2,pods=1", False)],
)
async def test_a_quota_that_is_full_with_the_old_pod_has_room_for_the_new_one(
    world: World, asked: str, *, makes_room: bool
) -> None:
    words = f"exceeded quota: tight, requested: {asked}, used: {asked}, limited: {asked}"
    world.cluster.fail("dry-run", PODS, ForbiddenError(words, status=403))
    found = await world.apply(TryPod(MANIFEST, "spec changed"))
    assert (found is None) == makes_room


async def test_a_hung_pod_is_ended_by_the_kubelet_and_says_why(world: World) -> None:
    pod = world.stands()
    assert await world.apply(KillPod(pod, "HeartbeatsMissed", "hangs")) is None
    assert world.pod["spec"]["activeDeadlineSeconds"] == 1
    assert world.pod["metadata"]["annotations"][Mark.ENDED_BY] == "HeartbeatsMissed"
    (kept,) = world.pods.of(US)
    assert kept.ended_by == "HeartbeatsMissed"


async def test_another_incarnation_is_not_killed(world: World) -> None:
    pod = world.stands()
    with pytest.raises(TransientError, match="changed meanwhile"):
        await world.apply(KillPod(replace(pod, uid="of-the-former"), "HeartbeatsMissed", "hangs"))
    assert "activeDeadlineSeconds" not in world.pod["spec"]


async def test_a_kill_of_a_pod_that_is_gone_is_done(world: World) -> None:
    gone = PodView("hello-r1", "default", "pod-1", US, 1)
    assert await world.apply(KillPod(gone, "HeartbeatsMissed", "hangs")) is None


async def test_a_kill_that_is_refused_is_told_and_never_becomes_a_deletion(world: World) -> None:
    pod = world.stands()
    kill = KillPod(pod, "HeartbeatsMissed", "hangs")
    world.cluster.fail("merge", PODS, ForbiddenError("denied by policy", status=403))
    assert is_refused(await world.apply(kill), RefusalKind.KILL, "denied by policy")
    world.cluster.fail("merge", PODS, ConflictError("modified", status=409))
    with pytest.raises(TransientError):
        await world.apply(kill)
    assert world.writes() == [("merge", "pods")] * 2


async def test_only_the_very_pod_is_deleted_and_a_missing_one_is_no_failure(world: World) -> None:
    pod = world.stands()
    assert await world.apply(DeletePod(replace(pod, uid="of-the-former"), "stop")) is None
    assert world.pod
    for _ in range(2):
        assert await world.apply(DeletePod(pod, "stop")) is None
    assert world.cluster.objects == {}


async def test_a_deleted_pod_is_known_to_terminate_before_the_watch_says_so(world: World) -> None:
    pod = world.stands()
    world.pod["spec"]["nodeName"] = "node-1"
    await world.apply(DeletePod(pod, "replaced"))
    assert [one.terminating for one in world.pods.of(pod.owner)] == [True]


async def test_a_delete_that_another_was_quicker_with_is_answered_without_a_revision(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = world.stands()
    last = {"metadata": {"name": pod.name, "uid": pod.uid, "deletionTimestamp": "2026-11-18T12Z"}}

    async def delete(*_: object, **__: object) -> dict[str, Any]:
        return last

    monkeypatch.setattr(world.cluster, "delete", delete)
    assert await world.apply(DeletePod(pod, "1 ended pods are kept")) is None


async def test_a_missing_heartbeat_is_made_and_a_leftover_removed(world: World) -> None:
    pod = world.stands()
    assert await world.apply(CreateHeartbeat(pod, "it has none")) is None
    assert world.heartbeat["spec"]["podUID"] == pod.uid
    of_the_former = DeleteHeartbeat("hello-r1", "of-the-former", "its pod is finished")
    assert await world.apply(of_the_former) is None
    leftover = DeleteHeartbeat("hello-r1", world.heartbeat["metadata"]["uid"], "it is finished")
    for _ in range(2):
        assert await world.apply(leftover) is None
    assert list(world.cluster.objects) == [("pods", "default", "hello-r1")]


async def test_a_heartbeat_of_ours_that_is_there_already_is_taken_with_its_beats(
    world: World,
) -> None:
    pod = world.stands()
    await world.apply(CreateHeartbeat(pod, "it has none"))
    beat = {"status": {"sequence": 4, "beatAgeMillis": 0}}
    world.cluster.change(HEARTBEATS, "default", "hello-r1", beat)
    world.beats.forget(pod.uid)
    assert await world.apply(CreateHeartbeat(pod, "we saw none")) is None
    view = world.beats.view(pod.uid, 0.0)
    assert view
    assert view.silence == 0


def a_heartbeat(*owners: Object) -> Object:
    metadata = {"name": "hello-r1", "ownerReferences": list(owners)}
    return {"metadata": metadata, "spec": {"podUID": "another"}}


async def test_a_foreign_heartbeat_is_told_and_left_alone(world: World) -> None:
    pod = world.stands()
    theirs = world.cluster.add(HEARTBEATS, a_heartbeat())
    refusal = await world.apply(CreateHeartbeat(pod, "it has none"))
    assert is_refused(refusal, RefusalKind.CONFLICT, "A Heartbeat hello-r1 that is not of pod")
    assert world.heartbeat == theirs
    assert world.beats.view(pod.uid, 0.0) is None


async def test_the_heartbeat_of_a_former_pod_is_waited_for(world: World) -> None:
    pod = world.stands()
    world.cluster.add(HEARTBEATS, a_heartbeat(an_owner("another", "hello-r1", "Pod")))
    with pytest.raises(TransientError, match="of the former pod is not gone yet"):
        await world.apply(CreateHeartbeat(pod, "it has none"))


async def test_a_refused_heartbeat_is_told(world: World) -> None:
    world.cluster.fail("create", HEARTBEATS, ForbiddenError("no such right", status=403))
    refusal = await world.apply(CREATE)
    assert is_refused(refusal, RefusalKind.CREATE, "Heartbeat hello-r1 was refused")
    assert [pod.name for pod in world.pods.of(US)] == ["hello-r1"]
