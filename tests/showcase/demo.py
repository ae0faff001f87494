"""`make demo`: an agent freezes, and what its Supervisor does about it is told as it happens."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster import faults, local, places
from tests.cluster.errors import ClusterError
from tests.support.install import MANIFESTS
from tests.support.kubectl import Kubectl

NAME = "demo"
PATIENCE_SECONDS = 90
COLUMNS = "custom-columns=:.type,:.reason,:.message"


def demo() -> None:
    cluster = local.running(places.kept_cluster())
    if cluster is None or cluster.network is None:
        raise ClusterError("no cluster with a real node is up: run `make up` first")
    kubectl = Kubectl(cluster, "default")
    kubectl("delete", "sup", NAME, "--ignore-not-found", "--cascade=foreground")
    sample = str(MANIFESTS / "samples" / f"{NAME}.yaml")
    uid = kubectl("apply", "-f", sample, "-o", "json").json["metadata"]["uid"]
    print(f"Agent {NAME} beats every 3 s; more than 3 missed beats make it UNRESPONSIVE.\n")
    with _events(kubectl, uid) as events:
        _narrate(kubectl, events)
    print(f"\n{kubectl('get', 'sup', NAME).out}")
    print(
        f"Next: kubectl describe sup {NAME}   ·   kubectl logs {NAME}-r1 -c agent   ·   make down"
    )


def _narrate(kubectl: Kubectl, events: Iterator[list[str]]) -> None:
    """Tell each Event as it comes; freeze the agent when it is ACTIVE, end when it is back."""
    started, frozen = time.monotonic(), False
    for kind, reason, text in events:
        print(
            f"{time.monotonic() - started:5.1f} s  {kind:<8} {reason:<17} {text.strip()}",
            flush=True,
        )
        if reason == "Recovered":
            return
        if reason == "Active" and not frozen:
            frozen = True
            pids = faults.freeze(kubectl.cluster, kubectl.get("pod", f"{NAME}-r1"))
            said = f"SIGSTOP to process {pids[0]}, the agent: it hangs, its pod still says Running"
            print(f"{time.monotonic() - started:5.1f} s  {'>>>':<26} {said}", flush=True)
    raise ClusterError(
        f"agent {NAME} has not recovered within {PATIENCE_SECONDS} s: look at "
        f'`make kubectl ARGS="describe sup {NAME}"`'
    )


@contextmanager
def _events(kubectl: Kubectl, uid: str) -> Iterator[Iterator[list[str]]]:
    """Type, reason and text of the Events of one object, as the API server tells them."""
    cluster = kubectl.cluster
    words = ["get", "events", f"--field-selector=involvedObject.uid={uid}", "--watch"]
    words += [f"--namespace={kubectl.namespace}", "--no-headers", "-o", COLUMNS]
    words += [f"--kubeconfig={cluster.kubeconfig}", f"--request-timeout={PATIENCE_SECONDS}s"]
    with subprocess.Popen(
        [cluster.kubectl, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as watch:
        try:
            yield (line.split(maxsplit=2) for line in watch.stdout or () if line.strip())
        finally:
            watch.terminate()
