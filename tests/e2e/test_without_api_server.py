"""The API server goes away and comes back: no agent is restarted for it.

The last of all files: the rest of the control plane takes half a minute to find its way back.
"""

import time

import pytest

from tests.cluster import faults
from tests.e2e.living import (
    ALLOWED,
    INTERVAL,
    an_agent,
    beats_again,
    create_all,
    incarnations,
    until,
)
from tests.support.kubectl import Kubectl

NAMES = ("one", "two")


@pytest.fixture(scope="module", autouse=True)
def _started(agents: Kubectl) -> None:
    create_all(agents, *(an_agent(name) for name in NAMES))
    for name in NAMES:
        agents.wait_status(name, phase="ACTIVE", health="HEALTHY")


def no_api_server_for(seconds: float, agents: Kubectl) -> None:
    before = incarnations(agents)
    with faults.api_server_away(agents.cluster):
        gone = time.monotonic()
        until(lambda: time.monotonic() - gone > seconds, "the outage is the test", seconds + 5)
    back = time.monotonic()
    for name in NAMES:
        beats_again(agents, name)
    until(lambda: time.monotonic() - back > ALLOWED + INTERVAL, "time for a wrong verdict")
    assert incarnations(agents) == before
    assert [agents.events(name) for name in NAMES] == [["Spawned", "Active"]] * 2


def test_nobody_is_restarted_for_an_api_server_that_was_away(agents: Kubectl) -> None:
    no_api_server_for(20, agents)


@pytest.mark.soak
@pytest.mark.timeout(240)
def test_nor_for_one_that_was_away_for_a_minute(agents: Kubectl) -> None:
    no_api_server_for(60, agents)
