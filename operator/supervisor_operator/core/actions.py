"""What a plan asks for, as data; `reason` is for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from supervisor_operator.core.observed import PodView

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Create the next run; its Heartbeat too, where it beats.

    `believed_gone` names the pod before it where only its absence speaks for a new one: its end
    was never seen, so the server is asked once more.
    """

    manifest: Json
    reason: str
    beats: bool
    believed_gone: str | None = None


@dataclass(frozen=True, slots=True)
class TryPod:
    """Ask the server whether it would take this pod, before the running one is given up."""

    manifest: Json
    reason: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    pod: PodView
    reason: str


@dataclass(frozen=True, slots=True)
class KillPod:
    """Let the kubelet end a pod that hangs, so that exit code, last words and logs stay."""

    pod: PodView
    ended_by: str
    reason: str


@dataclass(frozen=True, slots=True)
class CreateHeartbeat:
    pod: PodView
    reason: str


@dataclass(frozen=True, slots=True)
class DeleteHeartbeat:
    """Of this very Heartbeat: by now another pod may have one of the same name."""

    name: str
    uid: str
    reason: str


Action = CreatePod | TryPod | DeletePod | KillPod | CreateHeartbeat | DeleteHeartbeat
