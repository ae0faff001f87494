"""The picture of phases in docs/supervisor.md: every arrow is walked, and no other way is found."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from supervisor_operator.api.v1alpha1.meta import Phase
from tests.support.sim import Sim
from tests.unit.core.test_edges import beating, running

ROOT = Path(__file__).parents[3]
ARROW = re.compile(r"^  (\S+) --> (\S+): [^:;\n]+$", re.MULTILINE)
"""As mermaid reads it: a colon or semicolon would end the words beside an arrow."""
Arrow = tuple[str, str]
NEVER: dict[str, Any] = {"restart": {"maxRestarts": 0}}
SPECS: list[dict[str, Any]] = [
    {},
    NEVER,
    {"heartbeat": {"source": "None"}},
    {"restart": {"policy": "Never"}},
    {"restart": {"policy": "Always", "maxRestarts": 1}},
]
STEPS = 50
LIVES = 8


def pictured(page: str) -> set[Arrow]:
    _, _, picture = (ROOT / page).read_text().partition("stateDiagram-v2\n")
    lines = picture.partition("```")[0].splitlines()
    found = [(match[1], match[2]) for line in lines if (match := ARROW.match(line))]
    assert len(lines) == len(found) == len(set(found)) > 5
    return set(found)


def mode(sim: Sim, word: str) -> Sim:
    return sim.edit(operatingMode=word)


def failed() -> Sim:
    return running(**NEVER).exit(3)


def stopped() -> Sim:
    return mode(running(), "Stopped").remove()


def finished_while_paused() -> Sim:
    return mode(running(), "Paused").exit(0)


WAYS: dict[Arrow, Callable[[], Sim]] = {
    ("[*]", "SPAWNING"): lambda: Sim().settle(),
    ("[*]", "PAUSED"): lambda: Sim(operatingMode="Paused").settle(),
    ("[*]", "TERMINATED"): lambda: Sim(operatingMode="Stopped").settle(),
    ("SPAWNING", "ACTIVE"): lambda: Sim().settle().start().beat(),
    ("SPAWNING", "PAUSED"): lambda: mode(Sim().settle(), "Paused"),
    ("SPAWNING", "FAILED"): lambda: Sim(**NEVER).settle().start().exit(3),
    ("SPAWNING", "TERMINATED"): lambda: Sim().settle().start().exit(0),
    ("ACTIVE", "SPAWNING"): lambda: beating().exit(3),
    ("ACTIVE", "PAUSED"): lambda: mode(beating(), "Paused"),
    ("ACTIVE", "FAILED"): failed,
    ("ACTIVE", "TERMINATED"): lambda: running().exit(0),
    ("PAUSED", "ACTIVE"): lambda: mode(mode(running(), "Paused"), "Running"),
    ("PAUSED", "SPAWNING"): lambda: mode(Sim(operatingMode="Paused").settle(), "Running"),
    ("PAUSED", "FAILED"): lambda: mode(mode(failed(), "Paused"), "Running"),
    ("PAUSED", "TERMINATED"): lambda: mode(finished_while_paused(), "Running"),
    ("FAILED", "SPAWNING"): lambda: failed().edit(restartRequest="fixed"),
    ("FAILED", "PAUSED"): lambda: mode(failed(), "Paused"),
    ("FAILED", "TERMINATED"): lambda: mode(failed(), "Stopped"),
    ("TERMINATED", "SPAWNING"): lambda: mode(stopped(), "Running"),
    ("TERMINATED", "PAUSED"): lambda: mode(stopped(), "Paused"),
}


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[Arrow]:
    """Every change of phase that a pass makes."""
    arrows: list[Arrow] = []
    one_pass = Sim.one_pass

    def watched(sim: Sim) -> bool:
        before = sim.status.phase
        is_changed = one_pass(sim)
        if sim.status.phase is not before:
            arrows.append((before or "[*]", str(sim.status.phase)))
        return is_changed

    monkeypatch.setattr(Sim, "one_pass", watched)
    return arrows


def test_the_picture_has_the_ways_that_are_walked_here() -> None:
    assert pictured("docs/supervisor.md") == WAYS.keys()
    assert pictured("README.md") < WAYS.keys()
    assert {phase for arrow in WAYS for phase in arrow} == {"[*]", *Phase}


@pytest.mark.parametrize("arrow", WAYS, ids="-".join)
def test_an_arrow_is_a_way(arrow: Arrow, walked: list[Arrow]) -> None:
    WAYS[arrow]()
    assert walked[-1] == arrow


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_there_is_no_other_way(spec: dict[str, Any], walked: list[Arrow]) -> None:
    for seed in range(LIVES):
        sim, dice = Sim(**spec).settle(), random.Random(seed)  # noqa: S311 - the same each time
        for _ in range(STEPS):
            live(sim, dice)
    assert len(set(walked)) > len(Phase)
    assert set(walked) <= WAYS.keys()


def live(sim: Sim, dice: random.Random) -> None:
    pod = sim.pod if sim.unfinished else None
    match dice.randrange(10):
        case 0 | 1 if pod and not pod.terminating and not pod.running:
            sim.start()
        case 2 if pod and pod.running:
            sim.beat()
        case 3 if pod and pod.running:
            (sim.finish_kill if pod.ended_by else sim.exit)(dice.choice([0, 1, 137]))
        case 4:
            sim.wait(dice.choice([1, 10, 125, 700]))
        case 5:
            mode(sim, dice.choice(["Running", "Paused", "Stopped"]))
        case 6:
            sim.edit(agent={"image": dice.choice("ab")})
        case 7:
            sim.edit(restartRequest=str(dice.random()))
        case 8 if sim.pods:
            sim.remove(dice.choice(sorted(sim.pods)))
        case _:
            mode(sim, "Running")
