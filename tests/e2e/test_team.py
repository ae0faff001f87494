"""Teams of real agents whose middle one freezes, under each strategy, side by side."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster import faults
from tests.cluster.images import SAMPLE_AGENT
from tests.e2e.living import AGENT, GRACE, INTERVAL, QUICK, create_all, until
from tests.support.builders import a_team
from tests.support.kubectl import Kubectl

MEMBERS = ("a", "b", "c")
SECONDS = 110.0
RESTARTED = {"OneForOne": "b", "OneForAll": "abc", "RestForOne": "bc"}


def a_crew(strategy: str) -> dict[str, Any]:
    agent = {
        "image": SAMPLE_AGENT,
        "command": [AGENT, "beat"],
        "terminationGracePeriodSeconds": GRACE,
    }
    defaults = {"agent": agent, "heartbeat": {"intervalSeconds": INTERVAL}, "restart": QUICK}
    members = [{"name": name, "template": {}} for name in MEMBERS]
    name = strategy.lower()
    return a_team(name, members=members, defaults=defaults, restartStrategy=strategy)


def summary(kubectl: Kubectl, team: str) -> str:
    return str(kubectl.get("supteam", team).get("status", {}).get("readySummary"))


@pytest.fixture(scope="module")
def crews(agents: Kubectl) -> Kubectl:
    """All three teams up, and the middle agent of each frozen."""
    create_all(agents, *map(a_crew, RESTARTED))
    teams = [strategy.lower() for strategy in RESTARTED]
    for team in teams:
        until(lambda team=team: summary(agents, team) == "3/3", f"{team} is 3/3")  # type: ignore[misc]
    for team in teams:
        faults.freeze(agents.cluster, agents.get("pod", f"{team}-b-r1"))
    return agents


@pytest.mark.parametrize(("strategy", "restarted"), RESTARTED.items())
def test_the_middle_one_freezes(crews: Kubectl, strategy: str, restarted: str) -> None:
    team = strategy.lower()
    expected = {name: f"{team}-{name}-r{2 if name in restarted else 1}" for name in MEMBERS}

    def pods() -> dict[str, str | None]:
        return {
            name: crews.get("sup", f"{team}-{name}")["status"].get("podName") for name in MEMBERS
        }

    until(lambda: pods() == expected, f"{strategy} restarts {restarted}", SECONDS)
    until(lambda: summary(crews, team) == "3/3", f"{team} is 3/3 again", SECONDS)
    found = crews.get("sup", f"{team}-b")["status"]
    assert found["restartSummary"] == "1/3"
    assert found["lastTermination"]["reason"] == "HeartbeatsMissed"
    for name in set(restarted) - {"b"}:
        assert crews.get("sup", f"{team}-{name}")["status"]["restartSummary"] == "0/3"
    made = [crews.get("pod", expected[name])["metadata"] for name in restarted]
    times = [metadata["creationTimestamp"] for metadata in made]
    assert times == sorted(times), "started in list order"
    order = crews.get("supteam", team)["status"].get("order", {})
    assert order.get("members", []) == (
        [f"{team}-{name}" for name in restarted] if strategy != "OneForOne" else []
    )
