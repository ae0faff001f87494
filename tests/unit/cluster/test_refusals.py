"""What a person reads when a cluster cannot be had: one line, a cause, a next step."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import node, packages, places, programs
from tests.cluster.errors import ClusterError

ROOT = Path(__file__).parents[3]


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("KUBEBUILDER_ASSETS", "KUBECONFIG_UNDER_TEST", "CLUSTER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return places.cache()


def run(*words: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | ({"PATH": path} if path is not None else {})
    return subprocess.run(
        [sys.executable, "-m", "tests.cluster", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def fake_go(folder: Path, says: str) -> str:
    script = folder / "go"
    script.write_text(f"#!/bin/sh\necho '{says}'\n")
    script.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["up", "--tier", "moon"], 2, "there is no tier 'moon': choose one of control, fake, node"),
        (["kubeconfig"], 1, "no cluster is up: run `make cluster-up` first"),
        (["kubectl", "get", "pods"], 1, "no cluster is up: run `make cluster-up` first"),
    ],
)
def test_one_clear_line(words: list[str], code: int, says: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.strip() == f"cluster: {says}"


@pytest.mark.usefixtures("empty_cache")
def test_too_many_nodes() -> None:
    done = run("up", "--tier", "node", "--nodes", "5")
    assert done.returncode == 2
    assert "5 nodes cannot be had: choose 1 to 4" in done.stderr


@pytest.mark.usefixtures("empty_cache")
def test_a_node_without_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ClusterError, match="a real node needs root on Linux: become root"):
        packages.need_packages()


def test_a_node_without_its_packages_on_another_system(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(packages, "SYSTEM_PATH", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match=r"tier node needs buildah, .*runc: install them"):
        packages.need_packages()


def test_a_cache_folder_that_nodes_would_cover() -> None:
    with pytest.raises(ClusterError, match="lies in /var/lib, which a node covers"):
        node.check_folder(Path("/var/lib/ci/.cache/supervisor-operator/clusters/run-1"))


def test_no_go(empty_cache: Path, tmp_path: Path) -> None:
    done = run("up", path=str(tmp_path))
    assert done.returncode == 1
    assert "no Go found" in done.stderr
    assert "install Go 1.26 or newer" in done.stderr
    assert not (empty_cache / "clusters").exists()


def test_old_go(empty_cache: Path, tmp_path: Path) -> None:
    done = run("up", path=fake_go(tmp_path, "go version go1.19.8 linux/amd64"))
    assert done.returncode == 1
    assert "go1.19.8 linux/amd64, too old: install Go 1.26 or newer" in done.stderr
    assert not (empty_cache / "clusters").exists()


@pytest.mark.usefixtures("empty_cache")
def test_a_build_that_fails_names_program_and_cause(tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text(
        '#!/bin/sh\n[ "$1" = version ] && echo go1.26.0 && exit 0\necho boom >&2; exit 1\n'
    )
    go.chmod(0o755)
    done = run("up", path=f"{tmp_path}:/usr/bin:/bin")
    assert done.returncode == 1
    assert "building etcd failed: boom" in done.stderr


@pytest.mark.usefixtures("empty_cache")
def test_no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")._replace(free=2**30)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    monkeypatch.setattr(programs, "_go", lambda: "go")
    with pytest.raises(ClusterError, match=r"has 1\.0 GiB free, building needs 7: free some space"):
        programs.find_programs(["etcd"])


@pytest.mark.usefixtures("empty_cache")
def test_a_cache_folder_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "supervisor-operator").write_text("a file in the way")
    monkeypatch.setattr(programs, "_go", lambda: "go")
    with pytest.raises(ClusterError, match="cannot use the cache folder"):
        programs.find_programs(["etcd"])


@pytest.mark.usefixtures("empty_cache")
def test_ready_made_programs_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etcd").touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert programs.find_programs(["etcd"]) == {"etcd": tmp_path / "etcd"}


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize(
    ("name", "value", "code", "says"),
    [
        ("CLUSTER", "minikube", 2, "CLUSTER=minikube is unknown: use local or kind"),
        ("KUBECONFIG_UNDER_TEST", "/nowhere", 1, "KUBECONFIG_UNDER_TEST=/nowhere does not exist"),
    ],
)
def test_wrong_ways_in(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, code: int, says: str
) -> None:
    monkeypatch.setenv(name, value)
    done = run("up")
    assert done.returncode == code
    assert says in done.stderr
