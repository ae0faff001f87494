"""What people order a running agent to do, as changes of its spec: asked twice is asked once."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from supervisor_operator.api.v1alpha1.meta import OperatingMode


class Order(StrEnum):
    START = "start"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    RESTART = "restart"


MODES = {
    Order.START: OperatingMode.RUNNING,
    Order.STOP: OperatingMode.STOPPED,
    Order.PAUSE: OperatingMode.PAUSED,
    Order.RESUME: OperatingMode.RUNNING,
}


def patch_for(order: Order, run: int, now: datetime, request: str = "") -> dict[str, Any]:
    """A merge patch; a restart is asked of the run that is there now.

    So a repeated call is no second restart. Without a run, as above others only, the time must do.
    """
    if order in MODES:
        return {"spec": {"operatingMode": MODES[order]}}
    what = f"run {run}" if run else now.isoformat(timespec="seconds")
    return {"spec": {"restartRequest": request or f"restart of {what}"}}
