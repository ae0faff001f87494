"""Where the showcase cannot run it says why in one line, with the next step."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def refusal(command: str, cache: Path, monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    for name in ("CLUSTER", "KUBECONFIG_UNDER_TEST", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"XDG_CACHE_HOME": str(cache)} | variables).items():
        monkeypatch.setenv(name, value)
    done = subprocess.run(
        [sys.executable, "-m", "tests.showcase", command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    return line


def test_a_demo_needs_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = refusal("demo", tmp_path, monkeypatch)
    assert line == "make demo: no cluster with a real node is up: run `make up` first"


@pytest.mark.parametrize("variable", [{"CLUSTER": "kind"}, {"KUBECONFIG_UNDER_TEST": "/none"}])
def test_another_cluster_gets_the_command_that_installs_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: dict[str, str]
) -> None:
    line = refusal("up", tmp_path, monkeypatch, **variable)
    assert line.startswith("make up: this shows a local cluster: unset CLUSTER")
    assert "kubectl apply -k manifests/overlays/cluster" in line
