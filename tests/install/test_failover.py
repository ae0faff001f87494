"""Two replicas: who leads, who follows, who is silent, by the API server's own audit log."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path

import pytest

from supervisor_operator.settings import Settings
from tests.support.api_call import Call
from tests.support.audit import READS, AuditLog, Entry, token_id, token_of, when
from tests.support.builders import a_supervisor
from tests.support.install import NAMESPACE, operator_kubeconfig
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess
from tests.support.proxy import ApiProxy

NONE = {"source": "None"}
AFTER_TERM, AFTER_KILL = 3.0, 20.0
"""What is promised, in seconds, from the signal to the follower's lease."""
LEASE, RENEW = 3, 2.0
SHORT = (f"--lease-seconds={LEASE}", f"--renew-seconds={RENEW}", "--retry-seconds=0.3")
ONE_MORE_LOOK = 0.5
RENEW_AS_SHIPPED = Settings().renew_seconds

Pair = Callable[..., tuple["Replica", "Replica"]]


@dataclass(frozen=True, slots=True)
class Replica:
    name: str
    token: str
    operator: OperatorProcess
    proxy: ApiProxy
    audit: AuditLog

    def writes(self) -> list[str]:
        """What it has written so far, beside its lease."""
        return [f"{one.verb} {one.path}" for one in self.proxy.writes if "/leases" not in one.path]

    def asked(self) -> list[Entry]:
        """What it wanted to be written, its lease included, as the API server has it on record."""
        return [
            entry
            for entry in self.audit.entries()
            if token_of(entry) == self.token and entry["verb"] not in READS
        ]

    def follow(self) -> None:
        self.operator.start()
        self.operator.until(lambda: "waits for lease" in self.operator.log)

    def holds(self) -> bool:
        return "holds lease" in self.operator.log

    def lead(self) -> None:
        self.operator.until(self.holds)
        self.operator.ready()


@pytest.fixture
def pair(audited_kubectl: Kubectl, tmp_path: Path) -> Iterator[Pair]:
    """Two replicas of one namespace and lease, each with a token and behind a proxy of its own."""
    lease = audited_kubectl.namespace
    audit = AuditLog(audited_kubectl.cluster)
    with ExitStack() as stack:

        def replica(name: str, *times: str) -> Replica:
            access = operator_kubeconfig(audited_kubectl.cluster, new_folder(tmp_path / name))
            proxy = stack.enter_context(ApiProxy(access))
            flags = (
                *(f"--namespace={lease}", "--leader-elect=true", f"--lease-name={lease}"),
                *(f"--lease-namespace={NAMESPACE}", f"--identity={name}", *times),
            )
            operator = OperatorProcess(proxy.kubeconfig, tmp_path / f"{name}.log", *flags)
            stack.callback(operator.kill)
            return Replica(name, token_id(access), operator, proxy, audit)

        def started(*times: str) -> tuple[Replica, Replica]:
            first, second = replica("first", *times), replica("second", *times)
            first.operator.start()
            first.lead()
            second.follow()
            return first, second

        yield started
    audited_kubectl("delete", "lease", lease, f"--namespace={NAMESPACE}")


def new_folder(path: Path) -> Path:
    path.mkdir()
    return path


def only_with_its_lease(replicas: tuple[Replica, ...], renew: float) -> None:
    """Each write came from whoever had taken the lease last, and before his own deadline."""
    holder, since = "", datetime.min.replace(tzinfo=UTC)
    everything = [(when(entry), one.name, entry) for one in replicas for entry in one.asked()]
    wrote: Counter[str] = Counter()
    for moment, name, entry in sorted(everything, key=itemgetter(0)):
        if entry["objectRef"]["resource"] != "leases":
            what = f"{name}: {entry['verb']} {entry['requestURI']} at {moment}"
            assert name == holder, f"{what}, but {holder} leads since {since}"
            assert (moment - since).total_seconds() <= renew, f"{what}, lease of {since}"
            wrote[name] += 1
        elif entry["responseStatus"]["code"] in {200, 201}:
            holder, since = name, moment
    assert all(wrote[one.name] for one in replicas), wrote


def runs(kubectl: Kubectl, name: str, delay: int = 5) -> None:
    kubectl.create(a_supervisor(name, heartbeat=NONE, restart={"delaySeconds": delay}))
    kubectl.wait_status(name, phase="ACTIVE")


def test_the_follower_leads_soon_after_sigterm_and_after_sigkill(
    pair: Pair, audited_kubectl: Kubectl
) -> None:
    first, second = pair()
    runs(audited_kubectl, "one")
    assert second.operator.get("/healthz") == "ok"
    lease = f"{NAMESPACE}/{audited_kubectl.namespace}"
    assert f"lease: standby, waits for {lease} of first" in second.operator.get("/readyz?verbose")
    assert "supervisor_operator_leader 0.0" in second.operator.get("/metrics")
    assert second.writes() == []

    asked = time.monotonic()
    first.operator.signal(signal.SIGTERM)
    second.operator.until(second.holds)
    assert time.monotonic() - asked <= AFTER_TERM
    assert first.operator.wait_end() == 0
    second.lead()
    runs(audited_kubectl, "two")
    assert f"lease: leader, holds {lease}" in second.operator.get("/readyz?verbose")

    first.follow()
    killed = time.monotonic()
    second.operator.signal(signal.SIGKILL)
    first.operator.until(first.holds)
    assert time.monotonic() - killed <= AFTER_KILL
    first.lead()
    runs(audited_kubectl, "three")
    assert audited_kubectl.names("pods") == ["one-r1", "three-r1", "two-r1"]
    only_with_its_lease((first, second), RENEW_AS_SHIPPED)


def test_a_leader_that_cannot_renew_writes_nothing_after_its_own_deadline(
    pair: Pair, audited_kubectl: Kubectl
) -> None:
    first, second = pair(*SHORT)
    runs(audited_kubectl, "one")

    def renews(call: Call) -> bool:
        return call.plural == "leases"

    cut = first.proxy.refuse(renews, 503, "away", times=None)
    first.proxy.wait_for(lambda: cut.refused > 0)
    deadline = time.monotonic() + RENEW
    audited_kubectl("label", "pod", "one-r1", "fake.test/exit-code=3")
    first.operator.until(lambda: "lost lease" in first.operator.log)
    assert time.monotonic() <= deadline + ONE_MORE_LOOK
    before = first.writes()
    assert before, "it has worked until then"
    second.lead()
    audited_kubectl.wait("pod/one-r2", "create")
    runs(audited_kubectl, "two")
    assert first.operator.wait_end() == 1
    assert first.writes() == before
    assert audited_kubectl.names("pods") == ["one-r1", "one-r2", "two-r1"]
    only_with_its_lease((first, second), RENEW)


def test_a_leader_that_was_frozen_wakes_up_and_writes_nothing(
    pair: Pair, audited_kubectl: Kubectl
) -> None:
    first, second = pair(*SHORT)
    runs(audited_kubectl, "one", delay=1)
    before = first.writes()
    first.operator.signal(signal.SIGSTOP)
    second.lead()
    audited_kubectl("label", "pod", "one-r1", "fake.test/exit-code=3")
    audited_kubectl.wait("pod/one-r2", "create")
    first.operator.signal(signal.SIGCONT)
    assert first.operator.wait_end() == 1
    assert "Traceback" not in first.operator.log
    assert first.writes() == before
    runs(audited_kubectl, "two")
    assert second.holds()
    assert audited_kubectl.names("pods") == ["one-r1", "one-r2", "two-r1"]
    only_with_its_lease((first, second), RENEW)
    only_with_its_lease((first, second), RENEW)
