"""The objects of the bench: agents and the Jobs they are compared with, all alike."""

from __future__ import annotations

from typing import Any

from supervisor_operator.kube.cluster import Object, Resource
from tests.support.builders import AGENT, a_supervisor

JOBS = Resource("Job", "jobs", "batch")
INTERVAL_SECONDS = 10
MISSED_THRESHOLD = 3
ALLOWED_SECONDS = (MISSED_THRESHOLD + 1) * INTERVAL_SECONDS
DELAY_SECONDS = 2
# Runs that follow a crash or freeze do not beat, and the bench is over before this.
STARTUP_SECONDS = 3600


def names(count: int) -> list[str]:
    return [f"agent-{number:05}" for number in range(count)]


def pod_of(name: str, run: int = 1) -> str:
    return f"{name}-r{run}"


def a_silent_agent(name: str) -> Object:
    return a_supervisor(name, heartbeat={"source": "None"})


def a_beating_agent(name: str, interval: int = INTERVAL_SECONDS) -> Object:
    heartbeat: dict[str, Any] = {
        "source": "File",
        "intervalSeconds": interval,
        "missedThreshold": MISSED_THRESHOLD,
        "startupSeconds": STARTUP_SECONDS,
    }
    return a_supervisor(name, heartbeat=heartbeat, restart={"delaySeconds": DELAY_SECONDS})


def a_job(name: str) -> Object:
    container = {"name": "agent", **AGENT}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
