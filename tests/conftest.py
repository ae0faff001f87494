"""Clusters and namespaces for every test that needs a real Kubernetes.

One cluster per tier and run. Where a tier cannot run on this machine its tests are left out and
the end of the run says so in words; with CI=true that is a failure.
"""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.errors import ClusterError
from tests.cluster.local import Cluster
from tests.cluster.ways import open_cluster
from tests.support.install import install, operator_kubeconfig
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess

UNIT_TESTS = Path(__file__).parent / "unit"
NOT_TESTED = pytest.StashKey[Counter[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[NOT_TESTED] = Counter()
    # Says that there is no loop yet: pytest-asyncio asks, and being asked, Python 3.11 would make
    # one that nobody closes.
    asyncio.set_event_loop(None)
    # A shell's background job ignores SIGINT, and so would every program that a test starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where the operator is a process of its own, a leak seen here is the harness's: told, no more.

    The collector runs when it likes, so the error would fall on a test that has no part in it.
    """
    told = pytest.mark.filterwarnings("default::pytest.PytestUnraisableExceptionWarning")
    for item in items:
        if not item.path.is_relative_to(UNIT_TESTS):
            item.add_marker(told)


class Tier:
    """Starts a cluster at first use; a failed start is remembered, not tried again."""

    def __init__(
        self, name: str, missing: Counter[str], *, audit: bool = False, node_count: int = 1
    ) -> None:
        self._name = name
        self._missing = missing
        self._why: str | None = None
        self._context = open_cluster(name, audit=audit, node_count=node_count)
        self._cluster: Cluster | None = None

    def cluster(self) -> Cluster:
        if self._cluster is None and self._why is None:
            try:
                self._cluster = self._context.__enter__()
            except ClusterError as error:
                self._why = f"tier {self._name} cannot run here: {error}"
        if self._cluster is None:
            self._missing[str(self._why)] += 1
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(str(self._why))
        return self._cluster

    def close(self) -> None:
        if self._cluster:
            self._context.__exit__(None, None, None)


@pytest.fixture(scope="session")
def control_tier(request: pytest.FixtureRequest) -> Iterator[Tier]:
    tier = Tier("control", request.config.stash[NOT_TESTED])
    yield tier
    tier.close()


@pytest.fixture(scope="session")
def fake_tier(request: pytest.FixtureRequest) -> Iterator[Tier]:
    tier = Tier("fake", request.config.stash[NOT_TESTED])
    yield tier
    tier.close()


@pytest.fixture(scope="session")
def node_tier(request: pytest.FixtureRequest) -> Iterator[Tier]:
    tier = Tier("node", request.config.stash[NOT_TESTED], audit=True, node_count=2)
    yield tier
    tier.close()


@pytest.fixture(scope="session")
def audited_tier(request: pytest.FixtureRequest) -> Iterator[Tier]:
    """Tier fake once more, and its API server writes down who asked for what."""
    tier = Tier("fake", request.config.stash[NOT_TESTED], audit=True)
    yield tier
    tier.close()


@pytest.fixture(scope="session")
def audited(audited_tier: Tier) -> Cluster:
    """Installed, with nothing in it but what the tests that use it put there."""
    cluster = audited_tier.cluster()
    install(cluster)
    return cluster


@pytest.fixture
def control(control_tier: Tier) -> Cluster:
    return control_tier.cluster()


@pytest.fixture
def fake(fake_tier: Tier) -> Cluster:
    return fake_tier.cluster()


@pytest.fixture
def node(node_tier: Tier) -> Cluster:
    return node_tier.cluster()


@pytest.fixture
def kubectl(control: Cluster) -> Iterator[Kubectl]:
    """kubectl on tier control, in a namespace of this test's own."""
    yield from _in_namespace(control)


@pytest.fixture
def fake_kubectl(fake: Cluster) -> Iterator[Kubectl]:
    """The same on tier fake, where pods run."""
    yield from _in_namespace(fake)


@pytest.fixture
def audited_kubectl(audited: Cluster) -> Iterator[Kubectl]:
    """The same where all requests are on record."""
    yield from _in_namespace(audited)


@pytest.fixture
def node_kubectl(node: Cluster) -> Iterator[Kubectl]:
    """The same on tier node, where pods are processes."""
    yield from _in_namespace(node)


@pytest.fixture(scope="session")
def operator_access(fake_tier: Tier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig of the operator's own account on tier fake, RBAC and policies installed."""
    cluster = fake_tier.cluster()
    install(cluster)
    return operator_kubeconfig(cluster, tmp_path_factory.mktemp("access"))


@pytest.fixture
def operator(
    fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path
) -> Iterator[OperatorProcess]:
    """The operator for the test's own namespace on tier fake, with its own token and rights."""
    flag = f"--namespace={fake_kubectl.namespace}"
    found = OperatorProcess(operator_access, tmp_path / "operator.log", flag)
    found.start().ready()
    yield found
    found.kill()


@pytest.fixture
def namespace(kubectl: Kubectl) -> str:
    return kubectl.namespace


def _in_namespace(cluster: Cluster) -> Iterator[Kubectl]:
    found = Kubectl(cluster, f"test-{uuid.uuid4().hex[:8]}")
    found("create", "namespace", found.namespace)
    yield found
    found("delete", "namespace", found.namespace, "--wait=false")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    missing = config.stash[NOT_TESTED]
    if not missing:
        return
    terminalreporter.section("not tested on this machine")
    for why, count in missing.items():
        terminalreporter.write_line(f"{count} tests: {why}")
