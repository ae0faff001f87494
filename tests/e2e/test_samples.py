"""Every sample runs as it is, in a namespace that enforces PSS restricted."""

import pytest

from tests.e2e.living import status, until
from tests.support.install import MANIFESTS
from tests.support.kubectl import Kubectl

SAMPLES = {
    "hello": ("hello", "ACTIVE", "0/3"),
    "flaky": ("flaky", "ACTIVE", "1/3"),
    "crashing": ("crashing", "FAILED", "1/1"),
    "frozen": ("frozen", "ACTIVE", "0/3"),
    "busy": ("busy", "ACTIVE", "0/3"),
    "demo": ("demo", "ACTIVE", "0/3"),
    "finishing": ("finishing", "ACTIVE", "0/3"),
    "paused": ("paused", "PAUSED", "0/3"),
    "template": ("two-containers", "ACTIVE", "0/5"),
    "tree": ("trader", "ACTIVE", "0/3"),
}
"""File, its agent, and how that is shown soon after."""


@pytest.fixture(scope="module", autouse=True)
def _applied(agents: Kubectl) -> None:
    for file in (*SAMPLES, "team"):
        agents("apply", "-f", str(MANIFESTS / "samples" / f"{file}.yaml"))


@pytest.mark.parametrize("file", SAMPLES)
def test_a_sample_runs(agents: Kubectl, file: str) -> None:
    name, *shown = SAMPLES[file]

    def is_shown() -> bool:
        found = status(agents, name)
        return [found.get("phase"), found.get("restartSummary")] == shown

    until(is_shown, f"{name} is {shown}: {status(agents, name)}", 30)


def test_the_team_runs(agents: Kubectl) -> None:
    until(lambda: ready(agents) == "3/3", f"research is {ready(agents)}", 30)


def ready(kubectl: Kubectl) -> str | None:
    found: str | None = kubectl.get("supteam", "research")["status"].get("readySummary")
    return found


def test_no_sample_is_left_out() -> None:
    assert {path.stem for path in (MANIFESTS / "samples").glob("*.yaml")} == {*SAMPLES, "team"}
