"""What the token in a pod is good for: the status of that pod's own Heartbeat, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from supervisor_operator.kube.cluster import HEARTBEATS, LEASES, PODS, SUPERVISORS
from tests.e2e.living import RELAY, an_agent, create_all, until
from tests.support.builders import a_supervisor, an_object
from tests.support.kubectl import Kubectl
from tests.support.tokens import Agent

TOKEN_FILE = "/var/run/supervision-token/token"  # noqa: S105 - a path
REFUSED = (401, 403, 404, 422)


@pytest.fixture(scope="module", autouse=True)
def _started(agents: Kubectl) -> None:
    create_all(agents, an_agent("mine"), an_agent("yours"))
    for name in ("mine", "yours"):
        agents.wait_status(name, phase="ACTIVE")


@contextmanager
def holder_of_token(kubectl: Kubectl, pod: str) -> Iterator[Agent]:
    """Somebody who has read the token in a pod's relay, projected there by the kubelet."""
    token = kubectl("exec", pod, "-c", RELAY, "--", "cat", TOKEN_FILE).out
    with Agent(kubectl, pod, token) as agent:
        yield agent


@pytest.fixture
def thief(agents: Kubectl) -> Iterator[Agent]:
    with holder_of_token(agents, "mine-r1") as found:
        yield found


def test_its_own_beat_is_taken(thief: Agent) -> None:
    assert thief.beat(sequence=10_000).status == 200


def test_another_pods_beat_is_refused(thief: Agent) -> None:
    reply = thief.beat(name="yours-r1")
    assert reply.status == 422
    assert "is of the pod with UID" in reply.message


@pytest.mark.parametrize(
    ("method", "what", "body"),
    [
        ("PATCH", "heartbeats/mine-r1", {"spec": {"podUID": "another"}}),
        ("POST", "heartbeats", an_object("Heartbeat", "new", {"podUID": "x", "supervisor": "x"})),
        ("DELETE", "heartbeats/mine-r1", None),
        ("GET", "heartbeats", None),
        ("GET", "supervisors", None),
        ("PATCH", "supervisors/mine/status", {"status": {"phase": "ACTIVE"}}),
        ("PATCH", "supervisors/mine", {"spec": {"operatingMode": "Stopped"}}),
        ("GET", "pods", None),
        ("DELETE", "pods/yours-r1", None),
        ("GET", "secrets", None),
        ("GET", "leases", None),
        ("POST", "leases", {"metadata": {"name": "x"}, "spec": {"holderIdentity": "me"}}),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_all_else_is_refused(
    thief: Agent, method: str, what: str, body: dict[str, Any] | None
) -> None:
    plural, _, rest = what.partition("/")
    prefixes = {one.plural: one.prefix for one in (HEARTBEATS, LEASES, PODS, SUPERVISORS)}
    path = thief.path(prefixes.get(plural, "/api/v1"), plural)
    reply = thief.ask(method, f"{path}/{rest}" if rest else path, body)
    assert reply.status == 403, reply.message


def test_a_token_of_the_same_account_that_is_bound_to_no_pod_is_refused(agents: Kubectl) -> None:
    token = agents("create", "token", "default").out.strip()
    with Agent(agents, "mine-r1", token) as stranger:
        reply = stranger.beat()
    assert reply.status == 422
    assert "is bound to no pod" in reply.message


def test_the_agents_own_container_holds_no_token(agents: Kubectl) -> None:
    find = ["find", "/var/run", "/run", "-name", "token*"]
    assert agents.ask("exec", "mine-r1", "-c", "agent", "--", *find).out == ""


def test_a_token_outlives_neither_its_turn_nor_its_pod(agents: Kubectl) -> None:
    create_all(agents, an_agent("old"))
    agents.wait_status("old", phase="ACTIVE")
    with holder_of_token(agents, "old-r1") as former:
        agents.patch("old", {"restartRequest": "now"})
        assert former.beat(name="old-r2").status in REFUSED
        agents.wait_status("old", podName="old-r2", phase="ACTIVE")
        agents("wait", "pod/old-r1", "--for=delete", "--timeout=30s")
        assert former.beat(name="old-r2").status in REFUSED
        until(lambda: former.beat().status == 401, "the API server has forgotten the token", 20)
        assert former.ask("GET", former.path(HEARTBEATS.prefix, HEARTBEATS.plural)).status == 401


def test_who_may_not_create_pods_may_not_have_them_created(agents: Kubectl) -> None:
    agents("create", "role", "author", "--verb=create", "--resource=supervisors.supervision.dev")
    agents("create", "rolebinding", "author", "--role=author", "--user=jane")
    as_jane = ("create", "-f", "-", "--as=jane")
    refused = agents.ask(*as_jane, stdin=a_supervisor("hers"))
    assert "jane may not create pods in namespace" in refused.err
    agents("create", "role", "runner", "--verb=create", "--resource=pods")
    agents("create", "rolebinding", "runner", "--role=runner", "--user=jane")
    agents(*as_jane, stdin=a_supervisor("hers", operatingMode="Stopped"))
