"""A stage for stories that are disturbed once: one namespace, one operator, one proxy between.

At a chosen write the operator is killed and another follows at once, or the write is refused, or
its answer lost. Events are not numbered: nothing is decided by them, and an operator that dies at
one leaves the same objects behind as one that dies after the status before it.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

from tests.support.api_call import Call
from tests.support.behind_proxy import behind_proxy
from tests.support.fleet import Fleet
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess
from tests.support.proxy import ApiProxy
from tests.support.proxy_server import Write
from tests.support.tokens import Admin

CUSTOM = "/apis/supervision.dev/v1alpha1"
FLAGS = ("--resync-seconds=0.5", "--heartbeat-writes-per-second=0")
BEAT_SECONDS = 0.3
WAIT_SECONDS = 60.0
LOOK_SECONDS = 0.1
BEFORE, AFTER, LOST = "before", "after", "answer lost"
KILLS = (BEFORE, AFTER)
QUIET_SECONDS = 1.2
ROLLED_UP_SECONDS = 5.5
STORY = re.compile(r"\bs\d+\b")
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sentence:
    """At which write the operator shall die, or what shall become of it: a status, or LOST."""

    what: str
    nth: int
    how: str


@dataclass(slots=True)
class Stage:
    """A namespace with an operator behind a proxy, on which one story after another is told."""

    kubectl: Kubectl
    operator: OperatorProcess
    proxy: ApiProxy
    admin: Admin
    fleet: Fleet
    count: int = 0
    story: str = ""
    base: int = 0
    sentence: Sentence | None = None
    disturbed: threading.Event = field(default_factory=threading.Event)
    _before: Callable[[], None] | None = None

    def ask(self, method: str, path: str, body: Json | None = None) -> Json:
        """Of a path like `/api/v1 pods/NAME`; what is not there is empty."""
        group, _, rest = path.partition(" ")
        found = self.admin.ask(method, f"{group}/namespaces/{self.kubectl.namespace}/{rest}", body)
        if found.status == HTTPStatus.NOT_FOUND:
            return {}
        assert found.status < HTTPStatus.BAD_REQUEST, found.message
        return found.body

    def supervisor(self, name: str) -> Json:
        return self.ask("GET", f"{CUSTOM} supervisors/{name}")

    def edit(self, name: str, **spec: Any) -> None:
        self.ask("PATCH", f"{CUSTOM} supervisors/{name}", {"spec": spec})

    def until(self, condition: Callable[[], bool], what: Callable[[], object]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"{what()}\n{self.operator.log[-3000:]}"
            time.sleep(LOOK_SECONDS)

    def until_status(self, name: str, **fields: Any) -> None:
        def status() -> Json:
            found = self.supervisor(name).get("status", {})
            return {key: found.get(key) for key in fields}

        self.until(lambda: status() == fields, lambda: f"{name}: {status()}, not {fields}")

    def join(self, pod: str) -> None:
        """Let a pod beat as soon as it runs."""

        def runs() -> bool:
            return "startTime" in self.ask("GET", f"/api/v1 pods/{pod}").get("status", {})

        self.until(runs, lambda: f"pod {pod} does not run")
        self.fleet.join(pod)

    def writes(self) -> list[Write]:
        """What the operator wrote since the story began, Events left out."""
        return [one for one in self.proxy.writes[self.base :] if self._is_part(one)]

    def _is_part(self, write: Write) -> bool:
        """Not an Event, and not about an object of another story."""
        others = set(STORY.findall(f"{write.path} {write.name}")) - {self.story}
        return not others and "/events" not in write.path

    def remember(self, look: Callable[[], None]) -> None:
        """How to look once more at the story that has just been told."""
        self._before = look

    def look_back(self) -> None:
        """At the story before, whose objects were left standing during this one."""
        look, self._before = self._before, None
        if look:
            look()

    def told(self, write: Write, story: str = "") -> str:
        """A write in words that are the same in each telling."""
        path = write.path.partition("/namespaces/")[2].partition("/")[2]
        text = f"{write.verb} {path}" + (f"/{write.name}" if write.name else "")
        return re.sub(rf"\b{story or self.story}\b", "NAME", text)

    def until_quiet(self, seconds: float = QUIET_SECONDS) -> None:
        """No write for longer than two resyncs take."""
        last, since = -1, time.monotonic()
        while time.monotonic() - since < seconds:
            if len(self.proxy.writes) != last:
                last, since = len(self.proxy.writes), time.monotonic()
            time.sleep(LOOK_SECONDS)

    def begin(self) -> str:
        """A name of its own for the next story; what is written from here on belongs to it."""
        self.count += 1
        self.story = f"s{self.count}"
        self.base = len(self.proxy.writes)
        return self.story

    def disturb_at(self, what: str, nth: int, how: str) -> None:
        """At the nth write told so, counted from here."""
        self.base = len(self.proxy.writes)
        self.disturbed = threading.Event()
        self.sentence = Sentence(what, nth, how)

    def has_come(self, what: str, nth: int) -> bool:
        """Whether that write was on its way, answered or not."""
        return self._count(what) >= nth

    def _count(self, what: str) -> int:
        return sum(self.told(one) == what for one in self.writes())

    def strike(self, when: str, write: Write) -> None:
        due = self.sentence
        if due is None or (due.how == AFTER) != (when == AFTER) or not self._is_part(write):
            return
        if self.told(write) != due.what or self._count(due.what) != due.nth:
            return
        self.sentence = None
        self._renew_operator() if due.how in KILLS else self._trouble(write, due.how)
        self.disturbed.set()

    def _renew_operator(self) -> None:
        self.operator.kill()
        self.proxy.drop_clients()
        self.operator.start()

    def _trouble(self, write: Write, how: str) -> None:
        def is_it(call: Call) -> bool:
            return (call.verb, call.path) == (write.verb, write.path)

        if how == LOST:
            self.proxy.lose_answers(is_it)
        else:
            self.proxy.refuse(is_it, int(how), "refused by the test")


@contextmanager
def open_stage(kubectl: Kubectl, access: Path, folder: Path) -> Iterator[Stage]:
    folder.mkdir()
    kubectl.ask("create", "namespace", kubectl.namespace)
    with (
        behind_proxy(kubectl, access, folder, *FLAGS) as troubled,
        Admin(kubectl) as admin,
        Fleet(kubectl, BEAT_SECONDS) as fleet,
    ):
        stage = Stage(kubectl, troubled.operator, troubled.proxy, admin, fleet)
        stage.proxy.on_write("before", partial(stage.strike, BEFORE))
        stage.proxy.on_write("after", partial(stage.strike, AFTER))
        yield stage
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
