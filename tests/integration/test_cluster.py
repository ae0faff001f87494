"""The local cluster itself: quick, walled in, and gone without a trace."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import local, places
from tests.cluster.errors import ClusterError
from tests.cluster.local import Cluster
from tests.cluster.processes import Book, marked
from tests.support.kubectl import Kubectl

ROOT = Path(__file__).parents[2]
STARTER = """
import sys
from tests.cluster.ways import open_cluster
with open_cluster("control") as cluster:
    print(cluster.folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def own_cache(control: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of this test's own that shares only the built programs."""
    assert control.way == "local", "these tests are about the local way"
    root = tmp_path / "supervisor-operator"
    root.mkdir()
    (root / "programs").symlink_to(places.cache() / "programs")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    yield root
    local.clear_all()


def make(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "-s", *words],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if key != "MAKEFLAGS"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.mark.usefixtures("own_cache")
def test_up_use_and_down_as_a_newcomer_types_it() -> None:
    started = time.monotonic()
    up = make("cluster-up", "AUDIT=1")
    assert up.returncode == 0, up.stderr
    assert time.monotonic() - started < 15
    assert "cluster: local, tier control" in up.stderr
    assert Path(make("kubeconfig").stdout.strip()).exists()
    assert os.access(make("kubectl-path").stdout.strip(), os.X_OK)
    assert "heartbeats.supervision.dev" in make("kubectl", "ARGS=get crds").stdout
    assert "already up" in make("cluster-up").stderr
    other = make("cluster-up", "TIER=fake")
    assert other.returncode != 0
    assert "a cluster of tier control is up: run `make cluster-down`" in other.stderr

    cluster = local.load(places.kept_cluster())
    assert cluster is not None
    assert cluster.audit_log is not None
    lines = Path(cluster.audit_log).read_text().splitlines()
    assert any("customresourcedefinitions" in json.loads(line)["requestURI"] for line in lines)

    folder = places.kept_cluster()
    processes = Book(folder).read()
    assert make("cluster-down").returncode == 0
    assert [process.name for process in processes if process.alive] == []
    assert marked(folder) == []
    assert not folder.exists()
    assert make("kubeconfig").returncode != 0


@pytest.mark.usefixtures("own_cache")
def test_a_killed_starter_is_cleared_by_the_next_one() -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout is not None
    folder = Path(starter.stdout.readline().strip())
    assert len(marked(folder)) == 3
    starter.send_signal(signal.SIGKILL)
    starter.communicate()
    assert len(marked(folder)) == 3, "nobody is there to end them yet"
    assert local.clear_orphans() == [folder]
    assert marked(folder) == []
    assert not folder.exists()


@pytest.mark.usefixtures("own_cache")
def test_a_start_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "CRDS", tmp_path / "no-crds-here")
    folder = places.clusters() / "broken"
    with pytest.raises(ClusterError, match="kubectl apply"):
        local.start(folder, "control", kept=False)
    assert marked(folder) == []
    assert not folder.exists()


def test_two_clusters_at_once_do_not_see_each_other(control: Cluster, fake: Cluster) -> None:
    Kubectl(control, "default")("create", "configmap", "only-here")
    answer = Kubectl(fake, "default").ask("get", "configmap", "only-here")
    assert 'configmaps "only-here" not found' in answer.err
    Kubectl(control, "default")("delete", "configmap", "only-here")


def test_everything_listens_on_loopback_only(control: Cluster, fake: Cluster) -> None:
    pids = {
        process.pid
        for cluster in (control, fake)
        for process in Book(Path(str(cluster.folder))).read()
    }
    listening = [entry for pid in pids for entry in listening_addresses(pid)]
    assert len(listening) >= 7
    assert {address for address in listening if not address.startswith("127.")} == set()


def listening_addresses(pid: int) -> list[str]:
    """Addresses a process listens on, from /proc: the kernel's own word."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = []
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.append(dotted(fields[1].partition(":")[0]))
    return found


def dotted(address: str) -> str:
    if len(address) != 8:
        return f"ipv6 {address}"
    return ".".join(str(byte) for byte in reversed(bytes.fromhex(address)))
