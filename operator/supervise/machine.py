"""What a supervisor needs of an operating system, and the choice of the one we are on."""

import os
import signal
from collections.abc import Mapping, Sequence
from typing import Protocol

STOP_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGBREAK") if hasattr(signal, name)
)


class Machine(Protocol):
    """Runs one agent at a time. Codes are as subprocess gives them: negative means a signal."""

    warning: str

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Start the agent as leader of its own group and return its pid."""

    def pause(self, seconds: float) -> list[int]:
        """Wait, but not past an event; return the signals that came for us."""

    def exit_code(self) -> int | None:
        """Return how the agent itself ended, or None while it runs."""

    def remaining(self) -> bool:
        """Tell whether the agent or anything it started is still there."""

    def ask_to_end(self, signum: int) -> None:
        """Ask everything of the agent to end; whoever was asked before is not asked again."""

    def kill(self) -> None:
        """End everything of the agent by force."""

    def pass_on(self, signum: int) -> None:
        """Give a signal that is not for us to the agent."""


def this_machine() -> Machine:
    if os.name == "nt":
        from supervise.windows import WindowsMachine  # noqa: PLC0415 - imports only what is used

        return WindowsMachine()
    from supervise.posix import PosixMachine  # noqa: PLC0415

    return PosixMachine()
