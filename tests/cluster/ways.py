"""Which cluster is used: one that exists, the local one, or kind; the choice is said aloud."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.cluster import local, places
from tests.cluster.errors import ClusterError, UsageError
from tests.cluster.tiers import programs_of

KIND_NAME = "supervisor-operator"
KIND_CONFIG = Path(__file__).parent / "kind.yaml"


def choose_way() -> str:
    """`kubeconfig`, `local` or `kind`, by the environment and what this machine can do."""
    if os.environ.get("KUBECONFIG_UNDER_TEST"):
        return "kubeconfig"
    asked = os.environ.get("CLUSTER", "")
    if asked not in ("", "local", "kind"):
        raise UsageError(f"CLUSTER={asked} is unknown: use local or kind, or leave it out")
    if asked:
        return asked
    if sys.platform != "linux" and _docker_answers():
        return "kind"
    return "local"


def open_way(  # noqa: PLR0913 - each option with its default
    folder: Path,
    tier: str,
    *,
    kept: bool,
    audit: bool = False,
    node_count: int = 1,
    manager_flags: Mapping[str, object] | None = None,
) -> local.Cluster:
    """Get a cluster of a tier by the way this environment chooses."""
    programs_of(tier)
    way = choose_way()
    print(f"cluster: {way}, tier {tier}", file=sys.stderr, flush=True)
    match way:
        case "kubeconfig":
            return _borrowed(tier)
        case "kind":
            return _kind(folder, tier)
        case _:
            return local.start(
                folder,
                tier,
                kept=kept,
                audit=audit,
                node_count=node_count,
                manager_flags=manager_flags,
            )


@contextmanager
def open_cluster(
    tier: str,
    *,
    audit: bool = False,
    node_count: int = 1,
    manager_flags: Mapping[str, object] | None = None,
) -> Iterator[local.Cluster]:
    """A cluster for one test run, gone with it.

    `manager_flags` are for the kube-controller-manager of a local one, and win over ours.
    """
    folder = places.clusters() / f"run-{uuid.uuid4().hex[:10]}"
    cluster = open_way(
        folder,
        tier,
        kept=False,
        audit=audit,
        node_count=node_count,
        manager_flags=manager_flags,
    )
    try:
        yield cluster
    finally:
        close(cluster)


def close(cluster: local.Cluster) -> None:
    """Take down what we started; a borrowed cluster is left as it is."""
    if cluster.way == "local" and cluster.folder:
        local.stop(Path(cluster.folder))
    elif cluster.way == "kind":
        _run([_need("kind"), "delete", "cluster", "--name", KIND_NAME])
        if cluster.folder:
            shutil.rmtree(cluster.folder, ignore_errors=True)


def _borrowed(tier: str) -> local.Cluster:
    path = Path(os.environ["KUBECONFIG_UNDER_TEST"]).absolute()
    if not path.exists():
        raise ClusterError(f"KUBECONFIG_UNDER_TEST={path} does not exist: name a kubeconfig file")
    kubectl = _need("kubectl")
    _run([kubectl, f"--kubeconfig={path}", "apply", "--server-side", "-f", str(places.CRDS)])
    return local.Cluster(tier=tier, way="kubeconfig", kubeconfig=str(path), kubectl=kubectl)


def _kind(folder: Path, tier: str) -> local.Cluster:
    if not _docker_answers():
        raise ClusterError(
            "CLUSTER=kind needs a Docker engine that answers: start it, or leave CLUSTER out"
        )
    folder.mkdir(parents=True)
    config = folder / "admin.kubeconfig"
    create = ["create", "cluster", "--name", KIND_NAME, "--config", str(KIND_CONFIG)]
    _run([_need("kind"), *create, "--kubeconfig", str(config), "--wait", "120s"])
    kubectl = _need("kubectl")
    _run([kubectl, f"--kubeconfig={config}", "apply", "--server-side", "-f", str(places.CRDS)])
    return local.Cluster(tier, "kind", str(config), kubectl, folder=str(folder))


def _docker_answers() -> bool:
    docker = shutil.which("docker")
    if docker is None:
        return False
    asked = subprocess.run([docker, "info"], capture_output=True, check=False, timeout=30)
    return asked.returncode == 0


def _need(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise ClusterError(f"{program} is needed for this and not on PATH: install it")
    return found


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"{' '.join(command[:3])} …: {done.stderr.strip()}")
