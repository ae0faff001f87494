"""APPLY: the third stage of a pass. Carries a plan's actions out, one by one, in order.

A refusal that calls for words in the status is returned; a failure that only time heals is raised.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import assert_never

from supervisor_operator.api.v1alpha1.meta import GROUP
from supervisor_operator.core.actions import (
    Action,
    CreateHeartbeat,
    CreatePod,
    DeleteHeartbeat,
    DeletePod,
    KillPod,
    TryPod,
)
from supervisor_operator.core.observed import Observed, PodView, Refusal, RefusalKind
from supervisor_operator.core.pods import controller_of, view_pod
from supervisor_operator.core.template import build_heartbeat
from supervisor_operator.core.words import Label, Mark
from supervisor_operator.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    TransientError,
)
from supervisor_operator.kube.beats import BeatBook
from supervisor_operator.kube.cluster import HEARTBEATS, PODS, Cluster, Object
from supervisor_operator.kube.rights import BeatRights
from supervisor_operator.kube.store import Store

KILL_DEADLINE_SECONDS = 1
_FULL_QUOTA = re.compile(r"exceeded quota: \S+, requested: (\S+), used: ")


class Applier:
    def __init__(
        self,
        cluster: Cluster,
        pods: Store[PodView],
        beats: BeatBook,
        rights: BeatRights,
        on_applied: Callable[[Observed, Action], None] = lambda _observed, _action: None,
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._beats = beats
        self._rights = rights
        self._on_applied = on_applied

    async def apply(self, observed: Observed, action: Action) -> Refusal | None:
        refusal = await self._carry_out(observed, action)
        if refusal is None:
            self._on_applied(observed, action)
        return refusal

    async def _carry_out(self, observed: Observed, action: Action) -> Refusal | None:
        match action:
            case CreatePod():
                return await self._create(observed, action)
            case TryPod():
                return await self._try(observed, action)
            case DeletePod(pod=pod):
                await self._delete_pod(pod)
            case KillPod():
                return await self._kill(action)
            case CreateHeartbeat(pod=pod):
                return await self._create_heartbeat(observed, pod)
            case DeleteHeartbeat(name=name, uid=uid):
                with suppress(NotFoundError, ConflictError):
                    await self._cluster.delete(HEARTBEATS, observed.namespace, name, uid=uid)
            case _:
                assert_never(action)
        return None

    async def _create(self, observed: Observed, action: CreatePod) -> Refusal | None:
        if action.believed_gone:
            await self._make_sure_gone(observed.namespace, action.believed_gone)
        if action.beats and (refusal := await self._grant(observed.namespace)):
            return refusal
        name = action.manifest["metadata"]["name"]
        try:
            created = await self._cluster.create(PODS, observed.namespace, action.manifest)
        except InvalidError as error:
            return Refusal(RefusalKind.TEMPLATE, str(error))
        except ForbiddenError as error:
            return Refusal(RefusalKind.CREATE, f"Pod {name} was refused: {error}")
        except ConflictError:
            found = await self._standing_there(observed, name)
            if isinstance(found, Refusal):
                return found
            created = found
        self._pods.put(created)
        if action.beats:
            return await self._create_heartbeat(observed, view_pod(created))
        return None

    async def _grant(self, namespace: str) -> Refusal | None:
        try:
            problem = await self._rights.ensure(namespace)
        except ForbiddenError as error:
            return Refusal(RefusalKind.CREATE, f"The right to beat was refused: {error}")
        return Refusal(RefusalKind.RIGHTS, problem) if problem else None

    async def _make_sure_gone(self, namespace: str, name: str) -> None:
        try:
            found = await self._cluster.get(PODS, namespace, name)
        except NotFoundError:
            return
        if not view_pod(found).finished:
            raise TransientError(f"pod {namespace}/{name} is still there: looking again")

    async def _standing_there(self, observed: Observed, name: str) -> Object | Refusal:
        """Our own pod after a lost answer is as good as created; a stranger is left alone."""
        found = await self._cluster.get(PODS, observed.namespace, name)
        run = (found["metadata"].get("labels") or {}).get(Label.RUN)
        is_ours = controller_of(found) == observed.uid and name.endswith(f"-r{run}")
        is_going = "deletionTimestamp" in found["metadata"]
        if is_ours and not is_going:
            return found
        if is_going or _is_of_namesake(found, observed):
            raise TransientError(f"pod {name} of the former {observed.name} is not gone yet")
        return Refusal(RefusalKind.CONFLICT, f"A pod {name} that is not ours exists already")

    async def _try(self, observed: Observed, action: TryPod) -> Refusal | None:
        try:
            await self._cluster.create(PODS, observed.namespace, action.manifest, dry_run=True)
        except InvalidError as error:
            return Refusal(RefusalKind.TEMPLATE, str(error))
        except ForbiddenError as error:
            if _makes_room(error):
                return None
            return Refusal(RefusalKind.CREATE, f"The new pod was refused: {error}")
        except ConflictError:
            return None
        return None

    async def _create_heartbeat(self, observed: Observed, pod: PodView) -> Refusal | None:
        item = build_heartbeat(observed, pod)
        try:
            found = await self._cluster.create(HEARTBEATS, observed.namespace, item)
        except ConflictError:
            found = await self._cluster.get(HEARTBEATS, observed.namespace, pod.name)
        except ForbiddenError as error:
            return Refusal(RefusalKind.CREATE, f"Heartbeat {pod.name} was refused: {error}")
        if _is_of_former_pod(found, pod):
            raise TransientError(f"Heartbeat {pod.name} of the former pod is not gone yet")
        if found["spec"].get("podUID") != pod.uid:
            text = f"A Heartbeat {pod.name} that is not of pod {pod.name} exists already"
            return Refusal(RefusalKind.CONFLICT, text)
        self._beats.note("ADDED", found)
        return None

    async def _kill(self, action: KillPod) -> Refusal | None:
        pod = action.pod
        patch = {
            "metadata": {"uid": pod.uid, "annotations": {str(Mark.ENDED_BY): action.ended_by}},
            "spec": {"activeDeadlineSeconds": KILL_DEADLINE_SECONDS},
        }
        try:
            killed = await self._cluster.merge(PODS, pod.namespace, pod.name, patch)
        except NotFoundError:
            return None
        except ForbiddenError as error:
            text = f"Pod {pod.name} hangs and may not be ended: {error}"
            return Refusal(RefusalKind.KILL, text)
        except (ConflictError, InvalidError) as error:
            raise TransientError(f"pod {pod.name} changed meanwhile: {error}") from error
        self._pods.put(killed)
        return None

    async def _delete_pod(self, pod: PodView) -> None:
        """Gone already, or another incarnation by now: either way there is nothing to do."""
        with suppress(NotFoundError, ConflictError):
            answer = await self._cluster.delete(PODS, pod.namespace, pod.name, uid=pod.uid)
            # Without a revision it is gone: somebody else's delete was quicker than ours.
            if {"deletionTimestamp", "resourceVersion"} <= answer.get("metadata", {}).keys():
                self._pods.put(answer)  # or the next pass, quicker than the watch, does it again


def _makes_room(error: ForbiddenError) -> bool:
    """A quota that only counts pods is full with the very pod that is to be replaced."""
    found = _FULL_QUOTA.search(str(error))
    asked = [one.partition("=") for one in found[1].split(",")] if found else []
    return bool(asked) and all(
        (name, number) in {("pods", "1"), ("count/pods", "1")} for name, _, number in asked
    )


def _is_of_former_pod(heartbeat: Object, pod: PodView) -> bool:
    return any(
        owner.get("kind") == "Pod" and owner.get("name") == pod.name and owner["uid"] != pod.uid
        for owner in heartbeat["metadata"].get("ownerReferences") or ()
    )


def _is_of_namesake(pod: Object, observed: Observed) -> bool:
    """Of a Supervisor that had the same name before: the garbage collector is on its way."""
    return any(
        owner.get("kind") == "Supervisor"
        and str(owner.get("apiVersion", "")).startswith(f"{GROUP}/")
        and owner.get("name") == observed.name
        and owner.get("uid") != observed.uid
        for owner in pod["metadata"].get("ownerReferences") or ()
    )
