"""Two replicas with the timings they are shipped with: who leads, who follows, who is silent."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.api_call import Call
from tests.support.builders import a_supervisor
from tests.support.install import NAMESPACE
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess
from tests.support.proxy import ApiProxy

NONE = {"source": "None"}
AFTER_TERM, AFTER_KILL = 3.0, 20.0
"""What is promised, in seconds, from the signal to the follower's lease."""
LEASE, RENEW = 3, 2.0
SHORT = (f"--lease-seconds={LEASE}", f"--renew-seconds={RENEW}", "--retry-seconds=0.3")
ONE_MORE_LOOK = 0.5

Pair = Callable[..., tuple["Replica", "Replica"]]


@dataclass(frozen=True, slots=True)
class Replica:
    name: str
    operator: OperatorProcess
    proxy: ApiProxy

    def writes(self) -> list[str]:
        """What it has written so far, beside its lease."""
        return [f"{one.verb} {one.path}" for one in self.proxy.writes if "/leases" not in one.path]

    def follow(self) -> None:
        self.operator.start()
        self.operator.until(lambda: "waits for lease" in self.operator.log)

    def holds(self) -> bool:
        return "holds lease" in self.operator.log

    def lead(self) -> None:
        self.operator.until(self.holds)
        self.operator.ready()


@pytest.fixture
def pair(fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path) -> Iterator[Pair]:
    """Two replicas of one namespace and lease, each behind a proxy of its own."""
    lease = fake_kubectl.namespace
    with ExitStack() as stack:

        def replica(name: str, *times: str) -> Replica:
            proxy = stack.enter_context(ApiProxy(operator_access))
            flags = (
                *(f"--namespace={lease}", "--leader-elect=true", f"--lease-name={lease}"),
                *(f"--lease-namespace={NAMESPACE}", f"--identity={name}", *times),
            )
            operator = OperatorProcess(proxy.kubeconfig, tmp_path / f"{name}.log", *flags)
            stack.callback(operator.kill)
            return Replica(name, operator, proxy)

        def started(*times: str) -> tuple[Replica, Replica]:
            first, second = replica("first", *times), replica("second", *times)
            first.operator.start()
            first.lead()
            second.follow()
            return first, second

        yield started
    fake_kubectl("delete", "lease", lease, f"--namespace={NAMESPACE}")


def runs(kubectl: Kubectl, name: str) -> None:
    kubectl.create(a_supervisor(name, heartbeat=NONE))
    kubectl.wait_status(name, phase="ACTIVE")


def test_the_follower_leads_soon_after_sigterm_and_after_sigkill(
    pair: Pair, fake_kubectl: Kubectl
) -> None:
    first, second = pair()
    runs(fake_kubectl, "one")
    assert second.operator.get("/healthz") == "ok"
    lease = f"{NAMESPACE}/{fake_kubectl.namespace}"
    assert f"lease: standby, waits for {lease} of first" in second.operator.get("/readyz?verbose")
    assert "supervisor_operator_leader 0.0" in second.operator.get("/metrics")
    assert second.writes() == []

    asked = time.monotonic()
    first.operator.signal(signal.SIGTERM)
    second.operator.until(second.holds)
    assert time.monotonic() - asked <= AFTER_TERM
    assert first.operator.wait_end() == 0
    second.lead()
    runs(fake_kubectl, "two")
    assert f"lease: leader, holds {lease}" in second.operator.get("/readyz?verbose")

    first.follow()
    killed = time.monotonic()
    second.operator.signal(signal.SIGKILL)
    first.operator.until(first.holds)
    assert time.monotonic() - killed <= AFTER_KILL
    first.lead()
    runs(fake_kubectl, "three")
    assert fake_kubectl.names("pods") == ["one-r1", "three-r1", "two-r1"]


def test_a_leader_that_cannot_renew_writes_nothing_after_its_own_deadline(
    pair: Pair, fake_kubectl: Kubectl
) -> None:
    first, second = pair(*SHORT)
    runs(fake_kubectl, "one")

    def renews(call: Call) -> bool:
        return call.plural == "leases"

    cut = first.proxy.refuse(renews, 503, "away", times=None)
    first.proxy.wait_for(lambda: cut.refused > 0)
    deadline = time.monotonic() + RENEW
    fake_kubectl("label", "pod", "one-r1", "fake.test/exit-code=3")
    first.operator.until(lambda: "lost lease" in first.operator.log)
    assert time.monotonic() <= deadline + ONE_MORE_LOOK
    before = first.writes()
    assert before, "it has worked until then"
    second.lead()
    fake_kubectl.wait("pod/one-r2", "create")
    runs(fake_kubectl, "two")
    assert first.operator.wait_end() == 1
    assert first.writes() == before
    assert fake_kubectl.names("pods") == ["one-r1", "one-r2", "two-r1"]


def test_a_leader_that_was_frozen_wakes_up_and_writes_nothing(
    pair: Pair, fake_kubectl: Kubectl
) -> None:
    first, second = pair(*SHORT)
    runs(fake_kubectl, "one")
    before = first.writes()
    first.operator.signal(signal.SIGSTOP)
    second.lead()
    fake_kubectl("label", "pod", "one-r1", "fake.test/exit-code=3")
    fake_kubectl.wait("pod/one-r2", "create")
    first.operator.signal(signal.SIGCONT)
    assert first.operator.wait_end() == 1
    assert "Traceback" not in first.operator.log
    assert first.writes() == before
    runs(fake_kubectl, "two")
    assert second.holds()
    assert fake_kubectl.names("pods") == ["one-r1", "one-r2", "two-r1"]
