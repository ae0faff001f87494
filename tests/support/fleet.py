"""Agents that beat: one thread patches Heartbeats with each pod's own token."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Self

from tests.support.kubectl import Kubectl
from tests.support.tokens import Admin, Agent


class Fleet:
    """`pods` beat every `interval`; a silent one's relay goes on unless it is cut off."""

    def __init__(self, kubectl: Kubectl, interval: float) -> None:
        self._kubectl = kubectl
        self._admin = Admin(kubectl)
        self._interval = interval
        self._agents: dict[str, Agent] = {}
        self._sequence: dict[str, int] = {}
        self._beaten: dict[str, float] = {}
        self._frozen: set[str] = set()
        self._cut_off: set[str] = set()
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def join(self, *pods: str) -> None:
        """Let these pods beat from now on."""
        found = self._admin.pods()
        for name in pods:
            agent = Agent(self._kubectl, name, self._admin.pod_token(found[name]))
            with self._lock:
                self._agents[name] = agent
                self._sequence[name] = 0

    def freeze(self, *pods: str) -> None:
        """The agent hangs, its relay does not."""
        self._frozen.update(pods)

    def thaw(self, *pods: str) -> None:
        self._frozen.difference_update(pods)
        self._cut_off.difference_update(pods)

    def cut_off(self, *pods: str) -> None:
        """Nothing is heard of the pod any more."""
        self._cut_off.update(pods)

    def leave(self, *pods: str) -> None:
        with self._lock:
            for name in pods:
                self._agents.pop(name).close()

    def _run(self) -> None:
        while not self._done.wait(self._interval):
            with self._lock:
                for name, agent in self._agents.items():
                    if name not in self._cut_off:
                        self._beat(name, agent)

    def _beat(self, name: str, agent: Agent) -> None:
        now = time.monotonic()
        if name not in self._frozen:
            self._sequence[name] += 1
            self._beaten[name] = now
        age = int((now - self._beaten.get(name, now)) * 1000)
        if self._sequence[name]:
            agent.beat(sequence=self._sequence[name], age_millis=age)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(30)
        self.leave(*list(self._agents))
        self._admin.close()


@contextmanager
def beating(kubectl: Kubectl, pods: Iterable[str], interval: float) -> Iterator[Fleet]:
    with Fleet(kubectl, interval) as fleet:
        fleet.join(*pods)
        yield fleet
