"""`make up`: from a bare machine to agents that run, in five steps with their times.

Each step finds what an earlier one has done, so a second `make up` is quick; after a change of the
sources it brings the new image to the nodes and the operator to the new image. With KUBECONFIG set
it is about that cluster: see `elsewhere`.
"""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.cluster import images, local, node, packages, places, ways
from tests.cluster.errors import ClusterError
from tests.cluster.local import Cluster
from tests.cluster.processes import Book
from tests.cluster.programs import VERSION, find_programs
from tests.cluster.tiers import programs_of
from tests.showcase.elsewhere import foreign_kubeconfig, up_elsewhere
from tests.support.in_cluster import API, API_DEPLOYMENT, DEPLOYMENT, OVERLAY, ROLLOUT_SECONDS
from tests.support.install import MANIFESTS, NAMESPACE
from tests.support.kubectl import Kubectl

TIER = "node"
SAMPLES = ("hello", "flaky", "frozen", "team")
SAMPLE_SECONDS = 60.0
LOOK_SECONDS = 0.3
STEPS = 5

Found = TypeVar("Found")


def up() -> None:
    if kubeconfig := foreign_kubeconfig():
        up_elsewhere(kubeconfig)
        return
    if ways.choose_way() != "local":
        raise ClusterError(
            "this shows a local cluster: unset CLUSTER and KUBECONFIG_UNDER_TEST, or run "
            "`kubectl apply -k manifests/overlays/cluster` on a cluster of your own"
        )
    started = time.monotonic()
    pause = _step(1, "tools", _tools)
    archives = _step(2, "images", lambda: _images(pause))
    cluster = _step(3, "cluster", lambda: _cluster(archives))
    _step(4, "operator", lambda: _operator(cluster, archives))
    _step(5, "samples", lambda: _samples(cluster))
    print(f"\n{Kubectl(cluster, 'default')('get', 'sup,supteam').out}")
    print(f"Up in {time.monotonic() - started:.0f} s. {_next_commands(cluster)}")


def _step(number: int, name: str, work: Callable[[], tuple[Found, str]]) -> Found:
    started = time.monotonic()
    found, said = work()
    took = time.monotonic() - started
    print(f"[{number}/{STEPS}] {name:<9} {said:<72} {took:4.0f} s", flush=True)
    return found


def _tools() -> tuple[Path, str]:
    packages.need_packages()
    before = set(places.cache().glob("programs/*/*"))
    paths = find_programs(programs_of(TIER))
    source = "from the build cache" if before.issuperset(paths.values()) else "built now"
    return paths["pause"], f"kube-apiserver, kubelet, etcd … {VERSION} {source}"


def _images(pause: Path) -> tuple[list[Path], str]:
    before = set(images.folder().glob("*"))
    archives = images.build(pause)
    source = "made before" if before.issuperset(archives) else "made now"
    return archives, f"supervisor-operator:dev from Dockerfile, sample-agent:dev, {source}"


def _cluster(archives: list[Path]) -> tuple[Cluster, str]:
    folder = places.kept_cluster()
    cluster = local.running(folder)
    if cluster is None:
        local.stop(folder)
        cluster = local.start(folder, TIER, kept=True)
        _note(cluster).write_text(_names(archives))
        return cluster, "control plane ready, node node-0 Ready"
    if cluster.tier != TIER:
        raise ClusterError(f"a cluster of tier {cluster.tier} is up: run `make down` first")
    return cluster, "was up already"


def _operator(cluster: Cluster, archives: list[Path]) -> tuple[None, str]:
    kubectl = Kubectl(cluster, NAMESPACE)
    is_renewed = _load(cluster, archives)
    for parts in (OVERLAY, API):
        kubectl("apply", "--server-side", "--force-conflicts", "-k", str(parts))
    for deployment in (DEPLOYMENT, API_DEPLOYMENT):
        if is_renewed:
            kubectl("rollout", "restart", deployment)
    for deployment in (DEPLOYMENT, API_DEPLOYMENT):
        if kubectl.ask("rollout", "status", deployment, f"--timeout={ROLLOUT_SECONDS}s").code:
            raise ClusterError(
                f"{deployment} is not ready within {ROLLOUT_SECONDS} s: look at "
                f'`make kubectl ARGS="-n {NAMESPACE} describe pods"`'
            )
    said = "CRDs, policies, RBAC, operator and management API 1/1 ready"
    return None, f"{said}, with a new image" if is_renewed else said


def _load(cluster: Cluster, archives: list[Path]) -> bool:
    """Give a cluster that was up the images made since; tells whether there were any."""
    note = _note(cluster)
    if note.exists() and note.read_text() == _names(archives):
        return False
    for process in Book(note.parent).read():
        if process.name.startswith("node-"):
            node.load_images(process, archives)
    note.write_text(_names(archives))
    return True


def _note(cluster: Cluster) -> Path:
    """Which archives the nodes were given last."""
    return Path(str(cluster.folder)) / "images.txt"


def _names(archives: list[Path]) -> str:
    return "\n".join(archive.name for archive in archives)


def _samples(cluster: Cluster) -> tuple[None, str]:
    kubectl = Kubectl(cluster, "default")
    for name in SAMPLES:
        kubectl("apply", "-f", str(MANIFESTS / "samples" / f"{name}.yaml"))
    deadline = time.monotonic() + SAMPLE_SECONDS
    while starting := _starting(kubectl):
        if time.monotonic() > deadline:
            raise ClusterError(
                f"{', '.join(starting)} did not start within {SAMPLE_SECONDS:g} s: look at "
                f'`make kubectl ARGS="get sup,supteam -o wide"`'
            )
        time.sleep(LOOK_SECONDS)
    return None, "hello, flaky, frozen, research (team)"


def _starting(kubectl: Kubectl) -> list[str]:
    """The Supervisors and teams that are on their way up, by name."""
    items = kubectl("get", "supteam,sup", "-o", "json").json["items"]
    phases = {item["metadata"]["name"]: item["status"].get("phase") for item in items}
    return [name for name, phase in phases.items() if phase in (None, "SPAWNING")]


def _next_commands(cluster: Cluster) -> str:
    setup = [f"export KUBECONFIG={shlex.quote(cluster.kubeconfig)}"]
    if shutil.which("kubectl") is None:
        setup.append(f"alias kubectl={shlex.quote(cluster.kubectl)}")
    then = ["kubectl get sup -w", "kubectl describe sup frozen", "make demo", "make down"]
    return "Next: " + "\n      ".join([*setup, "   ·   ".join(then)])
