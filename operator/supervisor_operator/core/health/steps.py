"""A next step: one sentence, and the commands about one Supervisor that it is made of."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from datetime import datetime

from supervisor_operator.core.health.subject import Subject
from supervisor_operator.core.steer import Order, patch_for
from supervisor_operator.core.words import MANAGER

SYSTEM = "supervision-system"


@dataclass(frozen=True, slots=True)
class Step:
    text: str
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asker:
    """One Supervisor, and the commands that are about it."""

    subject: Subject
    now: datetime

    def kubectl(self, *words: str) -> str:
        return shlex.join(["kubectl", "-n", self.subject.namespace, *words])

    def steer(self, order: Order) -> str:
        patch = patch_for(order, self.subject.status.run or 0, self.now)
        text = json.dumps(patch, separators=(",", ":"))
        return self.kubectl("patch", "sup", self.subject.name, "--type=merge", "-p", text)

    @property
    def pod(self) -> str:
        return self.subject.status.pod_name or f"{self.subject.name}-r{self.subject.status.run}"

    @property
    def ended_pod(self) -> str:
        end = self.subject.status.last_termination
        return (end.pod_name if end else None) or self.pod

    def logs(self, *words: str) -> str:
        return self.kubectl("logs", self.pod, *words, "--tail=50")

    def last_words(self) -> str:
        return self.kubectl("logs", self.ended_pod, "--tail=50")

    def describe(self, kind: str, name: str) -> str:
        return self.kubectl("describe", kind, name)


def find_operator(subject: Subject) -> Step:
    """The object itself cannot tell: somebody has to look at the operator."""
    label = f"app.kubernetes.io/name={MANAGER}"
    return Step(
        "If this lasts for more than a few seconds, look whether the operator runs.",
        (
            shlex.join(["kubectl", "-n", SYSTEM, "get", "pods", "-l", label]),
            shlex.join(["kubectl", "-n", SYSTEM, "logs", f"deploy/{MANAGER}", "--tail=50"]),
            shlex.join(["kubectl", "-n", subject.namespace, "describe", "sup", subject.name]),
        ),
    )
