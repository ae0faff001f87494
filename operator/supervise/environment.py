"""The environment of the agent: ours, and where to beat and how often."""

import os
from collections.abc import Mapping

from supervise.contract import FILE_VARIABLE, INTERVAL_VARIABLE

BEATS_PER_TIMEOUT = 4  # three may be missed, as in a cluster
USUAL_PYTHONPATH = "src"


def agent_environment(
    ours: Mapping[str, str], heartbeat_file: str, timeout: float, pythonpath: str | None
) -> dict[str, str]:
    environment = dict(ours)
    environment[FILE_VARIABLE] = os.path.abspath(heartbeat_file)
    environment[INTERVAL_VARIABLE] = f"{timeout / BEATS_PER_TIMEOUT:g}"
    parts = [*_added(pythonpath), environment.get("PYTHONPATH", "")]
    # An empty part would put the working directory on the path.
    if joined := os.pathsep.join(part for part in parts if part):
        environment["PYTHONPATH"] = joined
    return environment


def _added(pythonpath: str | None) -> list[str]:
    """Return what is put in front: as given, or by default `src` where there is one."""
    if pythonpath is None:
        pythonpath = USUAL_PYTHONPATH if os.path.isdir(USUAL_PYTHONPATH) else ""
    return [os.path.abspath(part) for part in pythonpath.split(os.pathsep) if part]
