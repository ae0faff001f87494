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

SCOUTS = ("research-lead", "research-scout-1", "research-scout-2")
AGENTS = {"flaky": "1/3"} | dict.fromkeys(("frozen", "hello", *SCOUTS), "0/3")


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
    left_out = ("MAKEFLAGS", "KUBECONFIG")
    environment = {key: value for key, value in os.environ.items() if key not in left_out}
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
    shown = dict(line.split()[0:5:4] for line in said if line.startswith("supervisor."))
    assert shown == {
        f"supervisor.supervision.dev/{name}": restarts for name, restarts in AGENTS.items()
    }
    assert all("ACTIVE   HEALTHY" in line for line in said if line.startswith("supervisor."))
    assert "3/3" in next(line for line in said if line.startswith("supervisorteam."))
    assert any(line.startswith("Next: export KUBECONFIG=") for line in said)

    started = time.monotonic()
    told = [line.split() for line in make("demo").splitlines() if " s  " in line[:10]]
    assert time.monotonic() - started < 60
    assert [words[3] for words in told if words[2] in {"Normal", "Warning"}] == STORY

    started = time.monotonic()
    assert "was up already" in make("up")
    assert time.monotonic() - started < 20
    make("down")
    assert local.load(places.kept_cluster()) is None
