"""README and the first looks of the runbooks, typed line by line as a newcomer would."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster import local, places, ways
from tests.support.console import Step, steps

README = places.CHECKOUT / "README.md"
RUNBOOKS = places.CHECKOUT / "docs/operations/alerts.md"
ON_A_CLUSTER_OF_YOUR_OWN = ("kubectl apply --server-side", "helm ")
"""These are tried in test_docs, on a server that forgets them."""
THIS_VERY_RUN = "make test"

EXPORTS = re.compile(r"export KUBECONFIG=(\S+)")


@dataclass
class Terminal:
    """A shell in the checkout, with what `make up` tells one to export."""

    environment: dict[str, str]

    def type(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=places.CHECKOUT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=150,
        )
        if found := EXPORTS.search(done.stdout):
            self.environment["KUBECONFIG"] = found[1]
        return done.returncode, done.stdout


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """One with a cache of its own that shares programs and images with that of the user."""
    assert ways.choose_way() == "local", "README is about the local way"
    shared = places.cache()
    (tmp_path / "supervisor-operator").mkdir()
    for name in ("programs", "images"):
        (tmp_path / "supervisor-operator" / name).symlink_to(shared / name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept = {
        name: text for name, text in os.environ.items() if name not in {"MAKEFLAGS", "KUBECONFIG"}
    }
    path = subprocess.check_output(["make", "-s", "kubectl-path"], cwd=places.CHECKOUT, text=True)
    yield Terminal(kept | {"PATH": f"{Path(path).parent}:{kept['PATH']}"})
    local.clear_all()


def typed() -> list[Step]:
    first = {step.command: step for step in steps(README) if not step.shown}
    shown = {step.command: step for step in steps(README) if step.shown}
    found = first | shown | {step.command: step for step in steps(RUNBOOKS)}
    return [
        step
        for command, step in found.items()
        if command != THIS_VERY_RUN and not command.startswith(ON_A_CLUSTER_OF_YOUR_OWN)
    ]


@pytest.mark.timeout(300)
def test_what_readme_says_is_what_happens(terminal: Terminal) -> None:
    commands = [step.command for step in typed()]
    assert commands[:3] == ["make up", "make demo", "kubectl get heartbeats"]
    for step in typed():
        code, said = terminal.type(step.command)
        assert code == (1 if "is invalid" in str(step.shown) else 0), f"{step.command}: {said}"
        assert step.missing_in(said) == [], f"{step.command}: {said}"
    code, said = terminal.type("make up")
    assert "was up already" in said, said
    code, said = terminal.type("make down")
    assert code == 0, said
    assert local.load(places.kept_cluster()) is None


def test_ci_runs_what_readme_calls_the_test() -> None:
    assert THIS_VERY_RUN in [step.command for step in steps(README)]
    assert (places.CHECKOUT / ".ci/run").read_text().endswith(f"\n{THIS_VERY_RUN}\n")
