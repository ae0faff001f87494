"""`kubectl supervisor page` as a process, and what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.places import CHECKOUT

LINK = re.compile(r"(http://127\.0\.0\.1:\d+/)#code=(\S+)")


@contextmanager
def page_command(
    *words: str, folder: Path, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "supervisor_cli", "page", *words]
    known = os.environ | {"PYTHONPATH": str(CHECKOUT / "operator")} | environment
    with (
        (folder / "said").open("wb") as said,
        subprocess.Popen(command, stdout=said, stderr=said, env=known) as process,
    ):
        try:
            yield process
        finally:
            # SIGINT is ignored by whatever a shell starts in the background.
            process.terminate()
            try:
                process.wait(20)
            finally:
                process.kill()


def wait_for(path: Path, pattern: str) -> re.Match[str]:
    deadline = time.monotonic() + 30
    while True:
        text = path.read_text() if path.exists() else ""
        if found := re.search(pattern, text):
            return found
        assert time.monotonic() < deadline, text
        time.sleep(0.02)
