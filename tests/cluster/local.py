"""Puts a cluster of a tier together in a folder on this machine, and takes it apart again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.cluster import images, network, nodes, places
from tests.cluster.control import ControlPlane
from tests.cluster.fakes import start_fake_nodes
from tests.cluster.processes import Book, Process, this_process
from tests.cluster.programs import find_programs
from tests.cluster.tiers import programs_of


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster to talk to, whoever runs it."""

    tier: str
    way: str
    kubeconfig: str
    kubectl: str
    folder: str | None = None
    audit_log: str | None = None
    network: int | None = None
    """The index of the nodes' network; None where there are no real nodes of ours."""


def load(folder: Path) -> Cluster | None:
    """The cluster of a folder; None where none was started to the end."""
    try:
        return Cluster(**json.loads((folder / "cluster.json").read_text()))
    except (FileNotFoundError, NotADirectoryError):
        return None


def running(folder: Path) -> Cluster | None:
    """The cluster of a folder if its processes live; one of before a reboot does not count."""
    cluster = load(folder)
    if cluster is None or cluster.way != "local":
        return cluster
    alive = [process.alive for process in Book(folder).read()]
    return cluster if alive and all(alive) else None


def start(  # noqa: PLR0913 - each option with its default
    folder: Path,
    tier: str,
    *,
    kept: bool,
    audit: bool = False,
    node_count: int = 1,
    manager_flags: Mapping[str, object] | None = None,
) -> Cluster:
    """Start a cluster in a folder; whatever fails half-way is taken down again."""
    if tier == "node":
        nodes.check(node_count, folder)
    paths = find_programs(programs_of(tier))
    archives = images.build(paths["pause"]) if tier == "node" else []
    clear_orphans()
    folder.mkdir(parents=True)
    owner = None if kept else asdict(this_process())
    (folder / "owner.json").write_text(json.dumps(owner))
    try:
        wire = network.claim(folder) if tier == "node" else None
        plane = ControlPlane(folder, paths, wire, audit=audit, manager_flags=manager_flags or {})
        if wire:
            nodes.start(plane, wire, node_count, archives)
        else:
            plane.start()
        if tier == "fake":
            plane.start_scheduler()
            start_fake_nodes(plane)
    except BaseException:
        stop(folder)
        raise
    cluster = Cluster(
        tier=tier,
        way="local",
        kubeconfig=str(plane.admin),
        kubectl=str(paths["kubectl"]),
        folder=str(folder),
        audit_log=str(plane.audit_log) if plane.audit_log else None,
        network=wire.index if wire else None,
    )
    (folder / "cluster.json").write_text(json.dumps(asdict(cluster)))
    return cluster


def stop(folder: Path) -> None:
    """End all processes of a folder and remove it; also right for what is half there."""
    nodes.kill(folder)
    Book(folder).stop_all()
    nodes.clear(folder)
    shutil.rmtree(folder, ignore_errors=True)


def clear_orphans() -> list[Path]:
    """Take down the clusters whose starter is dead."""
    gone = [folder for folder in _folders() if _is_orphan(folder)]
    for folder in gone:
        stop(folder)
    return gone


def clear_all() -> list[Path]:
    """Take down every cluster of this user, the kept ones too."""
    gone = _folders()
    for folder in gone:
        stop(folder)
    return gone


def _folders() -> list[Path]:
    root = places.clusters()
    return sorted(root.iterdir()) if root.exists() else []


def _is_orphan(folder: Path) -> bool:
    try:
        owner = json.loads((folder / "owner.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return not folder.name.startswith("kept-")
    if owner is None:
        return False
    return not Process(**owner).alive
