"""supervise as a real process, and ways to wait for what it does.

Every process below one run carries a mark in its environment, so that a test can tell whether
anything survived, however far it ran from its parent.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

PACKAGES = Path(__file__).parents[3] / "operator"
SUPERVISE = (sys.executable, "-m", "supervise")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PACKAGES)}
ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)  # or each start would compile supervise anew
MARK = "SUPERVISE_TEST_RUN"
PATIENCE = 20.0
BEAT = "heartbeat.json"
USUAL: dict[str, float | str | bool] = {
    "heartbeat_file": BEAT,
    "timeout": 0.6,
    "check_interval": 0.05,
    "startup_seconds": 15,
    "delay": 0,
    "kill_after": 0.2,
    "max_restarts": 0,
    "json": True,
}
Seen = TypeVar("Seen")


def until(seen: Callable[[], Seen], what: str) -> Seen:
    """Wait until something is seen and return it; fail when it does not come."""
    end = time.monotonic() + PATIENCE
    while not (found := seen()):
        assert time.monotonic() < end, f"waited {PATIENCE:g} s in vain: {what}"
        time.sleep(0.01)
    return found


def python(program: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program, *arguments)


def shell(program: str) -> tuple[str, ...]:
    return ("sh", "-c", program)


class Run:
    def __init__(self, folder: Path, process: subprocess.Popen[bytes], mark: str) -> None:
        self.folder = folder
        self.process = process
        self._mark = mark

    @property
    def told(self) -> str:
        return (self.folder / "stderr").read_text()

    @property
    def said(self) -> str:
        return (self.folder / "stdout").read_text()

    def events(self, name: str = "") -> list[dict[str, Any]]:
        """Whole lines of supervise; the agent may write to standard error too."""
        whole = self.told.rpartition("\n")[0].splitlines()
        events = [json.loads(line) for line in whole if line.startswith("{")]
        return [event for event in events if name in ("", event["event"])]

    def until_event(self, name: str) -> dict[str, Any]:
        return until(lambda: self.events(name), f"event {name} in {self.told}")[0]

    def until_file(self, name: str) -> str:
        """Wait until the agent wrote a whole line into a file of this name; return the line."""
        path = self.folder / name

        def line() -> str:
            text = path.read_text() if path.exists() else ""
            return text.strip() if text.endswith("\n") else ""

        return until(line, f"a line in {name}; told: {self.told}")

    def send(self, signum: int) -> None:
        self.process.send_signal(signum)

    def code(self) -> int:
        """Wait for the end and return the exit code."""
        if self.process.poll() is None:
            # Told by the system at once, where Popen.wait would look again and again.
            ended = os.pidfd_open(self.process.pid)
            select.select([ended], [], [], PATIENCE)
            os.close(ended)
        return self.process.wait(timeout=0.1)

    def survivors(self) -> list[int]:
        """Living processes of this run, supervise itself included."""
        mark = f"{MARK}={self._mark}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found


def words(**options: float | str | bool) -> list[str]:
    """Return options as the command line wants them: quiet=True is --quiet."""
    found = []
    for name, value in {**USUAL, **options}.items():
        if value is not False:
            found.append(f"--{name.replace('_', '-')}")
            found += [] if value is True else [str(value)]
    return found


def running(
    folder: Path,
    command: Sequence[str],
    *,
    supervise: Sequence[str] = SUPERVISE,
    environment: Mapping[str, str] | None = None,
    **options: float | str | bool,
) -> AbstractContextManager[Run]:
    """Run `supervise run` over a command."""
    return started(
        folder, [*supervise, "run", *words(**options), "--", *command], environment or {}
    )


@contextmanager
def started(folder: Path, command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Run]:
    """Run a command; afterwards nothing of it is left, whatever the test found."""
    folder.mkdir(exist_ok=True)
    mark = uuid.uuid4().hex
    with (folder / "stdout").open("wb") as said, (folder / "stderr").open("wb") as told:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**ENVIRONMENT, MARK: mark, **environment},
            process_group=0,  # a supervise gone wrong must not end the tests
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=told,
        )
    run = Run(folder, process, mark)
    try:
        yield run
    finally:
        for pid in run.survivors():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(timeout=PATIENCE)


def memory(pid: int, of: str = "VmRSS") -> int:
    """Return KiB of this kind that the process has."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{of}:"))


def powerless_root() -> tuple[str, ...]:
    """Return what takes from root the power to read everything."""
    if os.geteuid() != 0:
        return ()
    return ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")


def in_a_container() -> tuple[str, ...]:
    """Return what makes a command the first process of a namespace of processes."""
    # Root may do so; others need a namespace of users around it.
    users = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    return ("unshare", *users, "--pid", "--fork", "--mount-proc")


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
