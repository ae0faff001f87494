"""The control groups of nodes: made, searched for the processes of a container, removed.

Version 1 has one tree per controller and is what runs here; with version 2 there is one tree, and
that path is written but not proven.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.cluster.errors import ClusterError

ROOT = Path("/sys/fs/cgroup")
REMOVE_SECONDS = 10.0
POLL = 0.05


def is_version_2(root: Path = ROOT) -> bool:
    return (root / "cgroup.controllers").exists()


def trees(root: Path = ROOT) -> list[Path]:
    if is_version_2(root):
        return [root]
    return sorted(path for path in root.iterdir() if path.is_dir() and not path.is_symlink())


def create(name: str, root: Path = ROOT) -> None:
    for tree in trees(root):
        if is_version_2(root):
            _hand_down_controllers(tree)
        (tree / name).mkdir(exist_ok=True)
        if tree.name == "cpuset":
            for file in ("cpuset.mems", "cpuset.cpus"):
                (tree / name / file).write_text((tree / file).read_text())


def remove(prefix: str, root: Path = ROOT) -> None:
    """Remove all groups whose name begins so; they must be empty soon, for their node is dead."""
    deadline = time.monotonic() + REMOVE_SECONDS
    for tree in trees(root) if root.exists() else []:
        for top in tree.glob(f"{prefix}*"):
            while not _removed(top):
                if time.monotonic() > deadline:
                    raise ClusterError(f"{top} still holds processes: look at them by hand")
                time.sleep(POLL)


def pids_of(name: str, container: str, root: Path = ROOT) -> list[int]:
    """Processes of a container as the host numbers them."""
    tree = root if is_version_2(root) else root / "pids"
    return [
        int(line)
        for folder in (tree / name).rglob(container)
        for line in (folder / "cgroup.procs").read_text().split()
    ]


def _hand_down_controllers(tree: Path) -> None:
    wanted = (tree / "cgroup.controllers").read_text().split()
    (tree / "cgroup.subtree_control").write_text(" ".join(f"+{one}" for one in wanted))


def _removed(top: Path) -> bool:
    for folder, _, _ in os.walk(top, topdown=False):
        try:
            Path(folder).rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return True
