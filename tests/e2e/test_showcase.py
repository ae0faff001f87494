"""What a newcomer types: make up, make demo, make up again, make down."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import local, places
from tests.cluster.local import Cluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]
STORY = ["Spawned", "Active", "Unresponsive", "RestartScheduled", "Restarted", "Active"]
STORY += ["Recovered"]


@pytest.fixture
def _own_cache(node: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache of this test's own that shares programs and images with that of the user."""
    assert node.way == "local", "the showcase is about the local way"
    (tmp_path / "supervisor-operator").mkdir()
    for name in ("programs", "images"):
        (tmp_path / "supervisor-operator" / name).symlink_to(places.cache() / name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    yield
    local.clear_all()


def make(target: str) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "MAKEFLAGS"}
    done = subprocess.run(
        ["make", "-s", target],
        cwd=places.CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("_own_cache")
def test_up_demo_up_again_and_down() -> None:
    said = make("up").splitlines()
    assert [line[:5] for line in said[:5]] == [f"[{step}/5]" for step in range(1, 6)]
    rows = [line.split()[:5] for line in said[7:10]]
    assert rows == [
        ["flaky", "ACTIVE", "HEALTHY", "HeartbeatFresh", "1/3"],
        ["frozen", "ACTIVE", "HEALTHY", "HeartbeatFresh", "0/3"],
        ["hello", "ACTIVE", "HEALTHY", "HeartbeatFresh", "0/3"],
    ]
    assert said[11].startswith("Next: export KUBECONFIG=")

    started = time.monotonic()
    told = [line.split() for line in make("demo").splitlines() if " s  " in line[:10]]
    assert time.monotonic() - started < 60
    assert [words[3] for words in told if words[2] in {"Normal", "Warning"}] == STORY

    started = time.monotonic()
    assert "was up already" in make("up")
    assert time.monotonic() - started < 20
    make("down")
    assert local.load(places.kept_cluster()) is None
