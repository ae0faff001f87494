"""Events of `supervise run`, told on standard error: standard output belongs to the agent."""

import contextlib
import os
import signal
from typing import Any

from supervise import clock


class Teller:
    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        self._as_json = as_json
        self._quiet = quiet
        self._problems: set[str] = set()

    def event(self, name: str, message: str, **fields: Any) -> None:
        if not self._quiet:
            self._write(name, message, fields)

    def failure(self, name: str, message: str, **fields: Any) -> None:
        """Tell why supervise itself fails; told also when quiet."""
        self._write(name, message, fields)

    def problem(self, message: str) -> None:
        """Tell of something wrong that harms nobody, and only the first time."""
        if message not in self._problems:
            self._problems.add(message)
            self.event("problem", message)

    def _write(self, name: str, message: str, fields: dict[str, Any]) -> None:
        line = f"supervise: {message}"
        if self._as_json:
            import json  # noqa: PLC0415 - people read words; only they who want it pay

            content = {"unix_ts": clock.wall(), "event": name, "message": message, **fields}
            line = json.dumps(content)
        # A closed terminal must not end the supervision. One write per line, past Python's
        # buffers, so that lines of the agent cannot split ours.
        with contextlib.suppress(OSError):
            os.write(2, f"{line}\n".encode(errors="backslashreplace"))


def how_ended(code: int) -> str:
    return f"ended by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"


def signal_name(signum: int) -> str:
    try:
        return signal.Signals(signum).name
    except ValueError:
        return f"signal {signum}"
