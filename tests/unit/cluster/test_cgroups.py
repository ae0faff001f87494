"""Control groups on plain folders, for both versions; the kernel's part is shown by tests/e2e."""

from pathlib import Path

import pytest

from tests.cluster import cgroups


@pytest.fixture
def version_1(tmp_path: Path) -> Path:
    for tree in ("cpu", "cpuset", "pids"):
        (tmp_path / tree).mkdir()
    (tmp_path / "cpuset" / "cpuset.cpus").write_text("0-1")
    (tmp_path / "cpuset" / "cpuset.mems").write_text("0")
    return tmp_path


@pytest.fixture
def version_2(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    return tmp_path


def a_container(tree: Path, pids: str) -> None:
    folder = tree / "kb0-node-0" / "kubepods" / "besteffort" / "pod1" / "c0ffee"
    folder.mkdir(parents=True)
    (folder / "cgroup.procs").write_text(pids)


def test_a_group_in_every_tree_of_version_1(version_1: Path) -> None:
    cgroups.create("kb0-node-0", version_1)
    assert sorted(path.parent.name for path in version_1.glob("*/kb0-node-0")) == [
        "cpu",
        "cpuset",
        "pids",
    ]
    group = version_1 / "cpuset" / "kb0-node-0"
    assert [(group / f"cpuset.{name}").read_text() for name in ("cpus", "mems")] == ["0-1", "0"]


def test_one_group_with_all_controllers_in_version_2(version_2: Path) -> None:
    cgroups.create("kb0-node-0", version_2)
    assert (version_2 / "kb0-node-0").is_dir()
    assert (version_2 / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"


def test_the_processes_of_a_container(version_1: Path) -> None:
    a_container(version_1 / "pids", "41\n42\n")
    assert cgroups.pids_of("kb0-node-0", "c0ffee", version_1) == [41, 42]
    assert cgroups.pids_of("kb0-node-0", "decaf", version_1) == []


def test_the_processes_of_a_container_in_version_2(version_2: Path) -> None:
    a_container(version_2, "41\n")
    assert cgroups.pids_of("kb0-node-0", "c0ffee", version_2) == [41]


def test_only_the_groups_of_one_cluster_are_removed(version_1: Path) -> None:
    for name in ("kb1-node-0/kubepods/pod1", "kb1-node-1", "kb10-node-0"):
        (version_1 / "pids" / name).mkdir(parents=True)
    cgroups.remove("kb1-node-", version_1)
    assert [path.name for path in (version_1 / "pids").iterdir()] == ["kb10-node-0"]
