"""Supervision of one agent: `supervise run`, `beat` and `relay`, and Heartbeat for Python."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from supervise.heartbeat import Heartbeat

__all__ = ["Heartbeat"]


def __getattr__(name: str) -> Any:
    """Import Heartbeat when it is asked for: the commands need not pay for it."""
    if name != "Heartbeat":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from supervise.heartbeat import Heartbeat  # noqa: PLC0415

    return Heartbeat
