"""Waits until a program answers, and not a moment longer than it lives."""

from __future__ import annotations

import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests.cluster.certificates import Pair
from tests.cluster.errors import ClusterError
from tests.cluster.processes import Book, Process

READY_SECONDS = 60.0
POLL = 0.05


class Probe:
    """Asks an address until it answers 200."""

    def __init__(self, url: str, ca: Path | None, client: Pair) -> None:
        self._url = url
        self._context = None
        if ca:
            self._context = ssl.create_default_context(cafile=str(ca))
            self._context.load_cert_chain(client.certificate, client.key)

    def __call__(self) -> bool:
        try:
            with urllib.request.urlopen(self._url, timeout=2, context=self._context):  # noqa: S310
                return True
        except (urllib.error.URLError, OSError):
            return False


def wait_until(ready: Callable[[], bool], what: str, process: Process, book: Book) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not ready():
        if not process.alive:
            raise book.died(process)
        if time.monotonic() > deadline:
            raise ClusterError(
                f"{what} was not ready within {READY_SECONDS:.0f} s: see {book.logs}"
            )
        time.sleep(POLL)
