"""The two admission policies, tried with real tokens on a real API server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from supervisor_operator.kube.client import open_cluster
from supervisor_operator.kube.cluster import HEARTBEATS, LEASES, PODS, SUPERVISORS, TEAMS, Resource
from supervisor_operator.kube.rights import BeatRights
from tests.support.builders import a_supervisor, a_team, an_object
from tests.support.install import install, operator_kubeconfig
from tests.support.kubectl import Kubectl
from tests.support.tokens import Agent, Reply, pod_token

if TYPE_CHECKING:
    from tests.conftest import Tier

LIMIT = 64 * 1024
ANNOTATIONS_LIMIT = 256 * 1024


@pytest.fixture(scope="module", autouse=True)
def _installed(control_tier: Tier) -> None:
    install(control_tier.cluster())


@pytest.fixture
async def granted(kubectl: Kubectl, tmp_path: Path) -> Kubectl:
    """The operator, with its own token, lets the agents of this namespace beat."""
    config = operator_kubeconfig(kubectl.cluster, tmp_path)
    async with open_cluster(str(config)) as cluster:
        assert await BeatRights(cluster).ensure(kubectl.namespace) is None
    return kubectl


def a_pod(kubectl: Kubectl, name: str) -> dict[str, Any]:
    containers = [{"name": "agent", "image": "localhost/none"}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
    return kubectl.create(pod | {"spec": {"restartPolicy": "Never", "containers": containers}})


def a_heartbeat(
    kubectl: Kubectl, pod: dict[str, Any], name: str = "", **spec: Any
) -> dict[str, Any]:
    metadata = pod["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
    whose = {"podUID": metadata["uid"], "supervisor": "hello", "intervalSeconds": 30}
    item = an_object("Heartbeat", name or metadata["name"], whose | spec)
    item["metadata"]["ownerReferences"] = [owner]
    return kubectl.create(item)


@pytest.fixture
def agent(granted: Kubectl) -> Iterator[Agent]:
    """The agent of pod hello-r1, which may beat; pod other-r1 has a Heartbeat too."""
    for name in ("other-r1", "hello-r1"):
        pod = a_pod(granted, name)
        a_heartbeat(granted, pod)
    with Agent.of(granted, pod) as found:
        wait_for(lambda: found.ask("GET", heartbeat_of(found, "hello-r1")), 200)
        yield found


def wait_for(ask: Callable[[], Reply], status: int) -> Reply:
    """Until rights just granted, or taken away, have reached the authorizer."""
    deadline = time.monotonic() + 10
    while (reply := ask()).status != status:
        assert time.monotonic() < deadline, reply
        time.sleep(0.02)
    return reply


def heartbeat_of(agent: Agent, name: str) -> str:
    return f"{agent.path(HEARTBEATS.prefix, HEARTBEATS.plural)}/{name}"


def status_of(kubectl: Kubectl, name: str) -> dict[str, Any] | None:
    return kubectl.get("heartbeat", name).get("status")


def test_an_agent_beats_for_itself(kubectl: Kubectl, agent: Agent) -> None:
    reply = agent.beat(sequence=7, age_millis=1200, metrics={"queue": 3})
    assert reply.status == 200
    stored = status_of(kubectl, "hello-r1")
    assert stored
    assert (stored["sequence"], stored["beatAgeMillis"]) == (7, 1200)
    assert stored["metrics"] == {"queue": 3}


def test_a_beat_changes_nothing_but_the_status(kubectl: Kubectl, agent: Agent) -> None:
    before = kubectl.get("heartbeat", "hello-r1")
    greedy = {
        "metadata": {"labels": {"mine": "now"}, "ownerReferences": []},
        "spec": {"podUID": "another", "intervalSeconds": 86400},
        "status": {"sequence": 1},
    }
    assert agent.ask("PATCH", heartbeat_of(agent, "hello-r1/status"), greedy).status == 200
    after = kubectl.get("heartbeat", "hello-r1")
    assert after["spec"] == before["spec"]
    assert after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]
    assert "labels" not in after["metadata"]
    assert after["status"] == {"sequence": 1}


def test_an_agent_does_nothing_else(kubectl: Kubectl, agent: Agent) -> None:
    kubectl.create(a_supervisor("hello"))
    own, other = heartbeat_of(agent, "hello-r1"), heartbeat_of(agent, "other-r1")
    heartbeats = agent.path(HEARTBEATS.prefix, HEARTBEATS.plural)
    leases = agent.path(LEASES.prefix, LEASES.plural)
    supervisors = agent.path(SUPERVISORS.prefix, SUPERVISORS.plural)
    beat = {"status": {"sequence": 1}}
    forged = an_object("Heartbeat", "forged", kubectl.get("heartbeat", "hello-r1")["spec"])
    lease = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": {"name": "mine"}}
    tries: dict[str, tuple[str, str, dict[str, Any] | None]] = {
        "beat for another": ("PATCH", f"{other}/status", beat),
        "replace its own status": ("PUT", f"{own}/status", kubectl.get("hb", "hello-r1") | beat),
        "change its own spec": ("PATCH", own, {"spec": {"intervalSeconds": 3600}}),
        "label its own": ("PATCH", own, {"metadata": {"labels": {"a": "b"}}}),
        "create": ("POST", heartbeats, forged),
        "delete its own": ("DELETE", own, None),
        "delete all": ("DELETE", heartbeats, None),
        "list": ("GET", heartbeats, None),
        "watch": ("GET", f"{heartbeats}?watch=true", None),
        "take a lease": ("POST", leases, lease),
        "read secrets": ("GET", agent.path("/api/v1", "secrets"), None),
        "read pods": ("GET", agent.path(PODS.prefix, PODS.plural), None),
        "change a Supervisor": ("PATCH", f"{supervisors}/hello", {"spec": {"description": "x"}}),
        "change its status": ("PATCH", f"{supervisors}/hello/status", {"status": {"run": 99}}),
    }
    answers = {name: agent.ask(*call) for name, call in tries.items()}
    assert {name: answer.status for name, answer in answers.items()} == {
        name: 422 if name == "beat for another" else 403 for name in tries
    }
    assert status_of(kubectl, "other-r1") is None


def test_a_refused_beat_says_whose_it_is_and_what_to_do(kubectl: Kubectl, agent: Agent) -> None:
    namespace = kubectl.namespace
    uids = {name: kubectl.get("pod", name)["metadata"]["uid"] for name in ("hello-r1", "other-r1")}
    said = agent.beat(name="other-r1").message
    assert (
        f"Heartbeat {namespace}/other-r1 is of the pod with UID {uids['other-r1']}, "
        f"but the token of system:serviceaccount:{namespace}:default is bound to "
        f"pod hello-r1 with UID {uids['hello-r1']}: beat with the token that is mounted into the "
        "pod itself, or let an admin grant the verb beat-for-others on heartbeats in this namespace"
    ) in said


def test_a_token_of_no_pod_does_not_beat(kubectl: Kubectl, agent: Agent) -> None:
    token = kubectl("create", "token", "default").out.strip()
    with Agent(kubectl, agent.name, token) as unbound:
        reply = unbound.beat()
    assert reply.status == 422
    assert f"{kubectl.namespace}:default is bound to no pod: beat with" in reply.message


def test_a_token_from_another_namespace_does_not_beat(kubectl: Kubectl, agent: Agent) -> None:
    elsewhere = Kubectl(kubectl.cluster, "default")
    pod = a_pod(elsewhere, f"hello-r1-{kubectl.namespace}")
    with Agent(kubectl, agent.name, pod_token(elsewhere, pod)) as foreigner:
        assert foreigner.beat().status == 403
    elsewhere("delete", "pod", pod["metadata"]["name"], "--wait=false")


def test_name_or_uid_alone_is_not_enough(granted: Kubectl, agent: Agent) -> None:
    """A pod's namesake, before or after it, has another UID."""
    pod = granted.get("pod", "hello-r1")
    a_heartbeat(granted, pod, name="alias-r1")
    assert agent.beat(name="alias-r1").status == 422
    granted("delete", "heartbeat", "hello-r1")
    a_heartbeat(granted, pod, podUID="namesake")
    reply = agent.beat()
    assert reply.status == 422
    assert "is of the pod with UID namesake" in reply.message


def test_a_deleted_pods_token_is_worth_nothing_to_its_successor(
    granted: Kubectl, agent: Agent
) -> None:
    """The API server may trust a token that it knows for ten seconds more; the policy does not."""
    unused = Agent.of(granted, granted.get("pod", "hello-r1"))
    assert agent.beat().status == 200
    granted("delete", "pod", "hello-r1")
    granted("wait", "heartbeat/hello-r1", "--for=delete", "--timeout=30s")
    successor = a_pod(granted, "hello-r1")
    a_heartbeat(granted, successor)
    with unused:
        assert unused.beat().status == 401
    assert agent.beat().status in {401, 422}
    assert status_of(granted, "hello-r1") is None
    with Agent.of(granted, successor) as follower:
        assert follower.beat().status == 200


def test_heartbeats_go_with_their_pods_only(kubectl: Kubectl, agent: Agent) -> None:
    assert agent.beat().status == 200
    kubectl("delete", "pod", "hello-r1")
    kubectl("wait", "heartbeat/hello-r1", "--for=delete", "--timeout=30s")
    assert kubectl.get("heartbeat", "other-r1")


def test_admins_and_whoever_may_beat_for_others_do(kubectl: Kubectl, agent: Agent) -> None:
    patch = '{"status": {"sequence": 5}}'
    kubectl("patch", "hb", "other-r1", "--subresource=status", "--type=merge", "-p", patch)
    assert status_of(kubectl, "other-r1") == {"sequence": 5}
    account = an_account(kubectl, "gateway", "patch", "heartbeats.supervision.dev/status")
    with Agent(kubectl, "other-r1", account) as gateway:
        wait_for(gateway.beat, 422)
        allow(kubectl, "gateway", "beat-for-others", "heartbeats.supervision.dev")
        wait_for(gateway.beat, 200)
    assert agent.beat(name="other-r1").status == 422


def an_account(kubectl: Kubectl, name: str, verbs: str, *resources: str) -> str:
    """The token of a new ServiceAccount that may do this."""
    kubectl("create", "serviceaccount", name)
    allow(kubectl, name, verbs, *resources)
    return kubectl("create", "token", name).out.strip()


def allow(kubectl: Kubectl, account: str, verbs: str, *resources: str) -> None:
    rights = (f"--verb={verbs}", *(f"--resource={resource}" for resource in resources))
    role = f"{account}-{verbs.partition(',')[0]}"
    kubectl("create", "role", role, *rights)
    subject = f"--serviceaccount={kubectl.namespace}:{account}"
    kubectl("create", "rolebinding", role, f"--role={role}", subject)


@pytest.fixture
def author(kubectl: Kubectl) -> Iterator[Agent]:
    """May write Supervisors and teams, their status too, but create no pods."""
    kinds = [f"{plural}.supervision.dev" for plural in ("supervisors", "supervisorteams")]
    resources = [*kinds, *(f"{kind}/status" for kind in kinds)]
    token = an_account(kubectl, "author", "get,create,update,patch", *resources)
    with Agent(kubectl, "author", token) as found:
        path = found.path(SUPERVISORS.prefix, f"{SUPERVISORS.plural}/none")
        wait_for(lambda: found.ask("GET", path), 404)
        yield found


def test_whoever_may_not_create_pods_has_none_created(kubectl: Kubectl, author: Agent) -> None:
    supervisors = author.path(SUPERVISORS.prefix, SUPERVISORS.plural)
    teams = author.path(TEAMS.prefix, TEAMS.plural)
    team = a_team(members=[{"name": "one", "template": {"agent": {"image": "localhost/a:1"}}}])
    refused = author.ask("POST", supervisors, a_supervisor())
    assert refused.status == 403
    namespace = kubectl.namespace
    assert (
        f"Supervisor {namespace}/hello runs agents in pods, and "
        f"system:serviceaccount:{namespace}:author may not create pods in namespace {namespace}: "
        "have that granted, or ask someone who may"
    ) in refused.message
    assert author.ask("POST", teams, team).status == 403
    allow(kubectl, "author", "create", "pods")
    wait_for(lambda: author.ask("POST", supervisors, a_supervisor()), 201)
    assert author.ask("POST", teams, team).status == 201
    image = {"spec": {"agent": {"image": "localhost/agent:2"}}}
    assert author.ask("PATCH", f"{supervisors}/hello", image).status == 200


@pytest.mark.parametrize(
    ("resource", "item"),
    [(SUPERVISORS, a_supervisor("mine")), (TEAMS, a_team("mine"))],
    ids=["supervisor", "team"],
)
def test_without_that_right_all_but_the_spec_can_be_changed(
    kubectl: Kubectl, author: Agent, resource: Resource, item: dict[str, Any]
) -> None:
    kubectl.create(item)
    mine = f"{author.path(resource.prefix, resource.plural)}/mine"

    def patch(body: dict[str, Any], subresource: str = "") -> int:
        return author.ask("PATCH", mine + subresource, body).status

    assert patch({"spec": {"description": "mine now"}}) == 403
    assert patch({"spec": {"operatingMode": "Paused"}}) == 403
    assert patch({"metadata": {"labels": {"colour": "red"}}}) == 200
    assert patch({"metadata": {"finalizers": ["example.com/wait"]}}) == 200
    assert patch({"metadata": {"finalizers": []}}) == 200
    assert patch({"status": {"phase": "ACTIVE"}}, "/status") == 200


def a_config(size: int) -> dict[str, Any]:
    """As long as that when written as JSON."""
    return {"data": "x" * (size - len('{"data":""}'))}


@pytest.mark.parametrize(
    ("kind", "spec_of", "says"),
    [
        ("Supervisor", lambda config: {"config": config}, "spec.config takes 65537 bytes"),
        ("SupervisorTeam", lambda config: {"config": config}, "spec.config takes 65537 bytes"),
        (
            "SupervisorTeam",
            lambda config: {"members": [{"name": "scout", "template": {"config": config}}]},
            "template.config of member scout takes more than 65536 bytes",
        ),
    ],
    ids=["supervisor", "team", "member"],
)
def test_a_config_has_at_most_64_kib(
    kubectl: Kubectl, kind: str, spec_of: Callable[[Any], dict[str, Any]], says: str
) -> None:
    kubectl.create(an_object(kind, "fits", spec_of(a_config(LIMIT))))
    large = an_object(kind, "large", spec_of(a_config(LIMIT + 1)))
    answer = kubectl.ask("create", "-f", "-", stdin=large)
    assert answer.code == 1
    assert f"{kind} {kubectl.namespace}/large: {says}" in answer.err
    assert "keep large data in a ConfigMap and name it in the config" in answer.err


@pytest.mark.parametrize(
    "worst",
    ["é" * 32700, "\v" * 32700, [-2.2250738585072014e-308] * 5900],
    ids=["another alphabet", "control characters", "long numbers"],
)
def test_no_config_that_passes_is_too_large_for_an_annotation(kubectl: Kubectl, worst: Any) -> None:
    config = {"data": worst}
    kubectl.create(a_supervisor(config=config))
    text = json.dumps(config, sort_keys=True)
    assert LIMIT * 2 < len(text) < ANNOTATIONS_LIMIT
    more = config | {"more": worst[: len(worst) // 50]}
    answer = kubectl.ask("create", "-f", "-", stdin=a_supervisor("more", config=more))
    assert "at most 65536 are allowed" in answer.err


def test_the_type_checker_of_the_server_finds_nothing(kubectl: Kubectl) -> None:
    for name in ("supervision-heartbeats", "supervision-supervisors"):
        generation = kubectl.get("validatingadmissionpolicy", name)["metadata"]["generation"]
        seen = f"jsonpath={{.status.observedGeneration}}={generation}"
        kubectl.wait(f"validatingadmissionpolicy/{name}", seen)
        status = kubectl.get("validatingadmissionpolicy", name)["status"]
        assert status["typeChecking"] == {}
