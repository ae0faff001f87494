"""Two minutes in which nothing changes, by the API server's own audit log."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.cluster.ways import open_cluster
from tests.support.builders import a_supervisor
from tests.support.install import ACCOUNT, NAMESPACE, install, operator_kubeconfig
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess

AGENTS = 100
STILL_SECONDS = 120.0
READS = {"get", "list", "watch"}
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"


def writes(log: Path, since: int) -> Counter[str]:
    """What the operator wrote since that byte of the log, its Lease apart."""
    with log.open("rb") as found:
        found.seek(since)
        entries = [json.loads(line) for line in found if line.endswith(b"}\n")]
    return Counter(
        f"{entry['verb']} {entry['objectRef']['resource']}"
        for entry in entries
        if entry["user"]["username"] == USER
        and entry["verb"] not in READS
        and entry["objectRef"]["resource"] != "leases"
    )


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_100_supervisors_and_two_still_minutes_cost_no_write(tmp_path: Path) -> None:
    with open_cluster("fake", audit=True) as cluster:
        install(cluster)
        kubectl = Kubectl(cluster, "default")
        flags = ("--leader-elect=true", f"--lease-namespace={NAMESPACE}", "--resync-seconds=30")
        access = operator_kubeconfig(cluster, tmp_path)
        operator = OperatorProcess(access, tmp_path / "operator.log", *flags)
        operator.start().ready()
        try:
            names = [f"a{number}" for number in range(AGENTS)]
            items = [a_supervisor(name, heartbeat={"source": "None"}) for name in names]
            kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})
            kubectl("wait", "sup", "--all", "--for=condition=Ready", "--timeout=60s")
            log = Path(str(cluster.audit_log))
            still_from = time.monotonic() + 5  # the last Events of the start are written by then
            operator.until(lambda: time.monotonic() > still_from)
            start = log.stat().st_size
            end = time.monotonic() + STILL_SECONDS
            operator.until(lambda: time.monotonic() > end, STILL_SECONDS + 10)
            assert log.stat().st_size > start, "the Lease at least is renewed"
            assert writes(log, start) == Counter()
        finally:
            operator.kill()
