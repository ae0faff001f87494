"""Agents that cannot run or be heard: the condition says why, in words to act on."""

import pytest

from tests.cluster.node import PAUSE_IMAGE
from tests.e2e.living import INTERVAL, a_template, an_agent, condition, create_all, until
from tests.support.builders import a_supervisor
from tests.support.kubectl import Kubectl

SYSTEM_FOLDER = {"heartbeat": {"file": "/etc/heartbeat.json"}}
ELSEWHERE = [{"name": "SUPERVISION_HEARTBEAT_FILE", "value": "/tmp/heartbeat.json"}]  # noqa: S108
READ_ONLY = {"securityContext": {"readOnlyRootFilesystem": True}}
WRITES = {"command": ["sh", "-c", "echo 1 >/results"]}


@pytest.fixture(scope="module", autouse=True)
def _started(agents: Kubectl) -> None:
    quick = {"heartbeat": {"intervalSeconds": INTERVAL}}
    never = {"restart": {"policy": "Never"}}
    create_all(
        agents,
        a_supervisor("root", agent={"image": PAUSE_IMAGE}),
        an_agent("system-folder", **SYSTEM_FOLDER),
        a_supervisor("elsewhere", agent=a_template({"env": ELSEWHERE}), **quick),
        a_supervisor("read-only", agent=a_template(READ_ONLY)),
        a_supervisor("writes", agent=a_template(READ_ONLY | WRITES), **never),
        a_supervisor("host-network", agent=a_template(hostNetwork=True)),
        a_supervisor("no-image", agent={"image": "localhost/none:1"}),
    )


def says(kubectl: Kubectl, name: str, reason: str, *words: str) -> None:
    def told() -> bool:
        found = condition(kubectl, name)
        return found.get("reason") == reason and all(word in found["message"] for word in words)

    until(told, f"{name} says {reason}: {words}, not {condition(kubectl, name)}", 30)


def test_a_heartbeat_file_in_a_system_folder_is_refused_in_our_words(agents: Kubectl) -> None:
    says(agents, "system-folder", "InvalidTemplate", "a volume would hide /etc")
    assert agents.get("sup", "system-folder")["status"]["phase"] == "FAILED"


def test_an_agent_that_beats_elsewhere_is_told_where_its_beats_are_looked_for(
    agents: Kubectl,
) -> None:
    says(agents, "elsewhere", "Starting", "no file /var/run/supervision/heartbeat.json")
    assert "no file" in agents("get", "hb", "elsewhere-r1").out


def test_a_read_only_root_does_not_keep_an_agent_from_beating(agents: Kubectl) -> None:
    agents.wait_status("read-only", phase="ACTIVE", health="HEALTHY")


def test_what_a_read_only_root_refuses_is_told_in_the_agents_last_words(agents: Kubectl) -> None:
    agents.wait_status("writes", phase="FAILED")
    last = agents.get("sup", "writes")["status"]["lastTermination"]
    assert "Read-only file system" in last["message"]


def test_a_pod_that_pod_security_forbids_is_told_in_the_servers_words(agents: Kubectl) -> None:
    says(agents, "host-network", "CreateRefused", 'violates PodSecurity "restricted')


def test_an_image_that_is_nowhere_is_told_in_the_kubelets_words(agents: Kubectl) -> None:
    until(lambda: "Pull" in condition(agents, "no-image").get("reason", ""), "the kubelet's word")
    assert "localhost/none:1" in condition(agents, "no-image")["message"]


def test_an_image_that_runs_as_root_is_told_in_the_kubelets_words(agents: Kubectl) -> None:
    words = "container has runAsNonRoot and image will run as root"
    says(agents, "root", "CreateContainerConfigError", words)
    assert agents.get("sup", "root")["status"]["phase"] == "SPAWNING"
