"""Starts and ends programs, and finds the ones a killed starter left behind.

A process is known by pid *and* start time, so that a number used again is never hit; those that
were not written down yet carry the cluster's folder in their environment.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.cluster.errors import ClusterError

MARK = "LOCAL_CLUSTER"
STOP_SECONDS = 5.0
FORK_SECONDS = 10.0
POLL = 0.02
_children: dict[int, subprocess.Popen[bytes]] = {}
"""Those this very process started, to be collected when they end."""


@dataclass(frozen=True, slots=True)
class Process:
    name: str
    pid: int
    started: int
    command: tuple[str, ...] = ()

    @property
    def alive(self) -> bool:
        return start_time(self.pid) == self.started


def start_time(pid: int) -> int | None:
    """Field 22 of /proc/PID/stat; None for no process or a zombie."""
    fields = _stat(pid)
    return int(fields[19]) if fields and fields[0] != "Z" else None


def state(pid: int) -> str | None:
    """The kernel's letter, T for a stopped one; None for no process."""
    fields = _stat(pid)
    return fields[0] if fields else None


def _stat(pid: int) -> list[str]:
    """What follows the program's name in /proc/PID/stat."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def this_process() -> Process:
    pid = os.getpid()
    return Process("starter", pid, start_time(pid) or 0)


class Book:
    """The processes of one cluster, written down in its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "processes.jsonl"
        self.logs = folder / "logs"

    def read(self) -> list[Process]:
        """In the order of their first start; of one started again, the newest."""
        try:
            lines = self._file.read_text().splitlines()
        except FileNotFoundError:
            return []
        entries = [json.loads(line) for line in lines if line.endswith("}")]
        found = [Process(**entry | {"command": tuple(entry["command"])}) for entry in entries]
        return list({process.name: process for process in found}.values())

    def find(self, name: str) -> Process:
        for process in self.read():
            if process.name == name:
                return process
        raise ClusterError(f"the cluster in {self._folder} never started a {name}")

    def start(self, name: str, command: Sequence[str]) -> Process:
        log = self.logs / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=os.environ | {MARK: str(self._folder)},
            )
        _children[child.pid] = child
        return self._write(name, child.pid, command)

    def start_behind(self, name: str, command: Sequence[str]) -> Process:
        """Start with a program that forks and waits, as nsenter does: its child is the one meant.

        The one in front ends with its child.
        """
        front = self.start(name, command)
        deadline = time.monotonic() + FORK_SECONDS
        while front.alive and time.monotonic() < deadline:
            child = _other_program_behind(front.pid)
            if child is not None:
                return self._write(name, child, command)
            time.sleep(POLL)
        raise self.died(front)

    def _write(self, name: str, pid: int, command: Sequence[str]) -> Process:
        found = Process(name, pid, start_time(pid) or 0, tuple(command))
        with self._file.open("a") as book:
            book.write(json.dumps(asdict(found)) + "\n")
        return found

    def died(self, process: Process) -> ClusterError:
        log = self.logs / f"{process.name}.log"
        lines = log.read_text(errors="replace").strip().splitlines()
        return ClusterError(
            f"{process.name} ended at its start: {lines[-1] if lines else 'no output'}"
        )

    def stop_all(self) -> None:
        """End everything, youngest first: etcd goes last, or its clients would hold it up."""
        for process in reversed(self.read()):
            end(process)
        for process in marked(self._folder):
            end(process, patience=0)
        for pid in list(_children):
            _reap(pid)


def marked(folder: Path) -> list[Process]:
    """Processes that carry the folder's mark, whoever started them."""
    wanted = f"{MARK}={folder}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        pid = int(entry.name)
        started = start_time(pid)
        if wanted in environment and started is not None:
            found.append(Process("unrecorded", pid, started))
    return found


def _other_program_behind(pid: int) -> int | None:
    """The child of a process, once it runs a program of its own."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        own = Path(f"/proc/{pid}/exe").readlink()
        ready = [int(child) for child in children if Path(f"/proc/{child}/exe").readlink() != own]
    except OSError:
        return None
    return ready[0] if ready else None


def end(process: Process, patience: float = STOP_SECONDS) -> None:
    signals: Iterable[tuple[signal.Signals, float]] = (
        (signal.SIGTERM, patience),
        (signal.SIGKILL, STOP_SECONDS),
    )
    for number, wait in signals:
        if not process.alive or (number == signal.SIGTERM and not wait):
            continue
        os.kill(process.pid, number)
        _wait_gone(process, wait)
    if process.alive:
        raise ClusterError(
            f"process {process.pid} ({process.name}) does not end: look at it by hand"
        )


def _wait_gone(process: Process, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while process.alive and time.monotonic() < deadline:
        _reap(process.pid)
        time.sleep(POLL)


def _reap(pid: int) -> None:
    """Collect the process if it is a child of ours."""
    child = _children.get(pid)
    if child is not None and child.poll() is not None:
        del _children[pid]
