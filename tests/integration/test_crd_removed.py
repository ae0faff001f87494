"""The CRDs are taken away under a living operator, with all that they held, and given back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.places import CHECKOUT
from tests.cluster.ways import open_cluster
from tests.support.builders import a_supervisor
from tests.support.install import install, operator_kubeconfig
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess

NONE = {"source": "None"}
LOOK_SECONDS = 0.2
WAIT_SECONDS = 120.0


def until(condition: Callable[[], bool]) -> None:
    """The operator may end and be started again meanwhile."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {WAIT_SECONDS:g} s"
        time.sleep(LOOK_SECONDS)


@contextmanager
def kept_alive(operator: OperatorProcess) -> Iterator[None]:
    """Whenever it ends it is started again, as a kubelet would."""
    done = threading.Event()

    def keep() -> None:
        while not done.wait(LOOK_SECONDS):
            if not operator.alive:
                operator.start()

    keeper = threading.Thread(target=keep)
    operator.start().ready()
    keeper.start()
    try:
        yield
    finally:
        done.set()
        keeper.join()
        operator.kill()


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize("long", [False, True], ids=["soon", "after the operator gave up"])
def test_crds_removed_and_restored(tmp_path: Path, *, long: bool) -> None:
    with open_cluster("fake") as cluster:
        install(cluster)
        kubectl = Kubectl(cluster, "default")
        access = operator_kubeconfig(cluster, tmp_path)
        operator = OperatorProcess(access, tmp_path / "operator.log", "--namespace=default")
        with kept_alive(operator):
            kubectl.create(a_supervisor("hello", heartbeat=NONE))
            kubectl.wait_status("hello", phase="ACTIVE")
            kubectl("delete", "-k", str(CHECKOUT / "crds"), "--timeout=60s")
            kubectl("wait", "pods", "--all", "--for=delete", "--timeout=60s")
            if long:
                until(lambda: "(waiting for it)" in operator.log_file.read_text())
            kubectl("apply", "--server-side", "-k", str(CHECKOUT / "crds"))
            crds = [
                f"crd/{plural}.supervision.dev"
                for plural in ("supervisors", "supervisorteams", "heartbeats")
            ]
            kubectl("wait", *crds, "--for=condition=Established", "--timeout=30s")
            kubectl.create(a_supervisor("hello", heartbeat=NONE))
            until(lambda: kubectl.get("sup", "hello").get("status", {}).get("phase") == "ACTIVE")
            assert kubectl.names("pods") == ["hello-r1"]
