"""Nodes go without a trace, however they end, and do not get into each other's way."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.cluster import faults, local, places
from tests.cluster.local import Cluster
from tests.cluster.processes import MARK, Book, start_time
from tests.cluster.ways import open_cluster
from tests.e2e.pods import a_pod
from tests.support.install import NAMESPACE
from tests.support.kubectl import Kubectl

ROOT = Path(__file__).parents[2]
STARTER = """
import sys
from tests.cluster.ways import open_cluster
with open_cluster("node"):
    sys.stdin.read()
"""
DEFAULT_FOLDERS = ("/run", "/var/lib", "/var/log", "/etc/cni", "/opt", "/run/netns")


@pytest.fixture
def own_cache(node: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of this test's own that shares only programs and images."""
    assert node.way == "local", "these tests are about the local way"
    wait_until_empty(Kubectl(node, "default"))
    root = tmp_path / "supervisor-operator"
    root.mkdir()
    for name in ("programs", "images"):
        (root / name).symlink_to(places.cache() / name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    yield root
    local.clear_all()


def wait_until_empty(kubectl: Kubectl) -> None:
    """Pods of earlier tests are going still, and would change the picture meanwhile."""
    not_the_operator = f"--field-selector=metadata.namespace!={NAMESPACE}"
    deadline = time.monotonic() + 60
    while kubectl("get", "pods", "--all-namespaces", not_the_operator, "--output=name").out:
        assert time.monotonic() < deadline, "pods of earlier tests do not go"
        time.sleep(0.2)


def picture(cache: Path) -> set[str]:
    """All on this machine that a cluster of tier node could leave behind, a line each."""
    kinds: dict[str, Iterable[object]] = {
        "process": marked_below(cache),
        "namespace": namespaces(),
        "link": said("ip", "-brief", "link"),
        "address": said("ip", "-brief", "address"),
        "route": said("ip", "route", "show", "table", "all"),
        "table": said("nft", "list", "tables"),
        "mount": Path("/proc/self/mounts").read_text().splitlines(),
        "cgroup": Path("/sys/fs/cgroup").glob("*/*/"),
        "forwarding": [Path("/proc/sys/net/ipv4/ip_forward").read_text()],
        "file": [path for folder in DEFAULT_FOLDERS for path in entries(folder)],
    }
    return {f"{kind} {line}" for kind, lines in kinds.items() for line in lines}


def marked_below(cache: Path) -> Iterator[str]:
    wanted = f"{MARK}={cache}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.startswith(wanted) for word in words):
            yield path.parent.name


def namespaces() -> set[str]:
    found = set()
    for kind in ("pid", "net"):
        for path in Path("/proc").glob(f"[0-9]*/ns/{kind}"):
            try:
                name = str(path.readlink())
            except OSError:
                continue
            if start_time(int(path.parts[2])) is not None:
                found.add(name)
    return found


def entries(folder: str) -> list[Path]:
    return list(Path(folder).iterdir()) if Path(folder).exists() else []


def said(*command: str) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def a_started_cluster(until: str) -> tuple["subprocess.Popen[bytes]", Path]:
    """A starter in a process of its own that has come as far as the named program."""
    starter = subprocess.Popen([sys.executable, "-c", STARTER], cwd=ROOT, stdin=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for folder in places.clusters().glob("run-*"):
            if until in [process.name for process in Book(folder).read()]:
                return starter, folder
        time.sleep(0.02)
    starter.kill()
    starter.communicate()
    pytest.fail(f"no {until} was started within a minute")


@pytest.mark.parametrize("until", ["node-0", "containerd-0", "kubelet-0"])
def test_a_starter_killed_half_way_is_cleared_without_a_trace(own_cache: Path, until: str) -> None:
    before = picture(own_cache)
    starter, folder = a_started_cluster(until)
    starter.send_signal(signal.SIGKILL)
    starter.communicate()
    assert picture(own_cache) != before, "nobody is there to clear it yet"
    environment = {key: value for key, value in os.environ.items() if key != "MAKEFLAGS"}
    clean = ["make", "-s", "cluster-clean"]
    subprocess.run(clean, cwd=ROOT, env=environment, check=True, timeout=60)
    assert picture(own_cache) ^ before == set()
    assert not folder.exists()


def test_a_second_cluster_beside_the_first(
    own_cache: Path, node: Cluster, node_kubectl: Kubectl
) -> None:
    node_kubectl.create(a_pod("first"))
    node_kubectl.wait("pod/first", "condition=Ready")
    before = picture(own_cache)
    with open_cluster("node", node_count=2) as second:
        assert second.network != node.network
        kubectl = Kubectl(second, "default")
        for number in range(2):
            kubectl.create(a_pod(f"on-{number}", nodeName=f"node-{number}"))
        for number in range(2):
            kubectl.wait(f"pod/on-{number}", "condition=Ready")
        assert reaches(kubectl, "on-0", "on-1")
        assert reaches(kubectl, "on-1", "on-0")
        faults.freeze(second, kubectl.get("pod", "on-1"))
    assert picture(own_cache) ^ before == set()
    assert node_kubectl("exec", "first", "--", "echo", "still here").out == "still here\n"


def reaches(kubectl: Kubectl, asker: str, asked: str) -> bool:
    """A refused connection came from the other pod itself, an unreachable one did not."""
    address = kubectl.get("pod", asked)["status"]["podIP"]
    program = f"import socket; print(socket.socket().connect_ex(('{address}', 9)))"
    return kubectl("exec", asker, "--", "python3", "-c", program).out == "111\n"
