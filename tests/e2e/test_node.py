"""Tier node does to pods what a cluster of one's own does."""

import json
import time

from tests.cluster import faults
from tests.cluster.images import PROJECT
from tests.cluster.local import Cluster
from tests.cluster.processes import state
from tests.e2e.pods import RESTRICTED, SHARED, a_container, a_pod
from tests.support.kubectl import Kubectl

WHO_AM_I = """
import json, os, ssl, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount"
host = os.environ["KUBERNETES_SERVICE_HOST"]
review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
headers = {"Content-Type": "application/json"}
headers["Authorization"] = "Bearer " + open(folder + "/token").read()
url = f"https://{host}/apis/authentication.k8s.io/v1/selfsubjectreviews"
request = urllib.request.Request(url, json.dumps(review).encode(), headers)
context = ssl.create_default_context(cafile=folder + "/ca.crt")
answer = json.load(urllib.request.urlopen(request, timeout=10, context=context))
print(json.dumps({"host": host, "user": answer["status"]["userInfo"]}))
"""
BEATS_THEN_ENDS = f"""
import pathlib, time
beat, seen = pathlib.Path("{SHARED}/beat"), pathlib.Path("{SHARED}/seen")
beat.write_text("alive")
while not seen.exists():
    time.sleep(0.05)
"""
LISTENS = f"""
import pathlib, signal, sys, time
def end(*_):
    print("told to end", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
beat = pathlib.Path("{SHARED}/beat")
while not beat.exists():
    time.sleep(0.05)
print("heard", beat.read_text(), flush=True)
pathlib.Path("{SHARED}/seen").touch()
while True:
    time.sleep(60)
"""
WHAT_THE_IMAGE_HOLDS = """
import getpass, json, os, kopf, kubernetes.aio, supervise, supervisor_operator
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines())
try:
    open("/project/new", "w")
except OSError as error:
    refused = error.strerror
names = ("CapEff", "Seccomp", "NoNewPrivs")
print(json.dumps({name: status[name] for name in names} | {
    "uid": os.getuid(), "user": getpass.getuser(), "write": refused}))
"""


def ends_as(kubectl: Kubectl, name: str, phase: str) -> str:
    """Wait until the pod has ended so, and give its agent's words."""
    kubectl.wait(f"pod/{name}", f"jsonpath={{.status.phase}}={phase}")
    return kubectl("logs", name, "-c", "agent").out


def test_a_pod_from_a_local_image_is_ready_and_can_be_looked_into(node_kubectl: Kubectl) -> None:
    node_kubectl.create(a_pod("worker"))
    node_kubectl.wait("pod/worker", "condition=Ready")
    # Without a probe Ready means started, not more.
    deadline = time.monotonic() + 10
    while not (words := node_kubectl("logs", "worker").out) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert words == "here I am\n"
    assert node_kubectl("exec", "worker", "--", "sh", "-c", "id -u").out == "65532\n"


def test_a_pod_reaches_the_api_by_its_service_address_and_is_known_there(
    node: Cluster, node_kubectl: Kubectl
) -> None:
    node_kubectl.create(a_pod("asker", a_container(WHO_AM_I)))
    said = json.loads(ends_as(node_kubectl, "asker", "Succeeded"))
    assert said["host"] == f"10.233.{node.network}.1"
    account = f"system:serviceaccount:{node_kubectl.namespace}:default"
    assert said["user"]["username"] == account
    assert said["user"]["extra"]["authentication.kubernetes.io/pod-name"] == ["asker"]


def test_a_sidecar_shares_a_folder_with_the_agent_and_ends_with_it(node_kubectl: Kubectl) -> None:
    relay = a_container(LISTENS, "relay", restartPolicy="Always")
    node_kubectl.create(a_pod("pair", a_container(BEATS_THEN_ENDS), initContainers=[relay]))
    ends_as(node_kubectl, "pair", "Succeeded")
    assert node_kubectl("logs", "pair", "-c", "relay").out == "heard alive\ntold to end\n"


def test_an_exit_code_and_last_words_are_kept(node_kubectl: Kubectl) -> None:
    program = "import sys; print('out of ideas', file=sys.stderr); sys.exit(3)"
    agent = a_container(program, terminationMessagePolicy="FallbackToLogsOnError")
    node_kubectl.create(a_pod("crasher", agent))
    ends_as(node_kubectl, "crasher", "Failed")
    pod = node_kubectl.get("pod", "crasher")
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["message"]) == (3, "out of ideas\n")


def test_the_project_image_runs_restricted_on_a_read_only_root(node_kubectl: Kubectl) -> None:
    enforce = "pod-security.kubernetes.io/enforce=restricted"
    node_kubectl("label", "namespace", node_kubectl.namespace, enforce)
    refused = node_kubectl.ask("create", "-f", "-", stdin=a_pod("loose"))
    assert 'violates PodSecurity "restricted' in refused.err

    agent = a_container(WHAT_THE_IMAGE_HOLDS, image=PROJECT, securityContext=RESTRICTED)
    node_kubectl.create(a_pod("tight", agent))
    said = json.loads(ends_as(node_kubectl, "tight", "Succeeded"))
    assert int(said.pop("CapEff"), 16) == 0
    assert said == {
        "Seccomp": "2",
        "NoNewPrivs": "1",
        "uid": 65532,
        "user": "supervisor-operator",
        "write": "Read-only file system",
    }


def test_supervise_is_on_the_path_of_both_images(node_kubectl: Kubectl) -> None:
    command = ["supervise", "--help"]
    node_kubectl.create(a_pod("sample", a_container("", command=command)))
    node_kubectl.create(a_pod("project", a_container("", command=command, image=PROJECT)))
    assert "supervise run [options]" in ends_as(node_kubectl, "sample", "Succeeded")
    assert "supervise run [options]" in ends_as(node_kubectl, "project", "Succeeded")


def test_both_sample_agents_beat_in_their_image(node_kubectl: Kubectl) -> None:
    agents = {"agent-sh": ["/agents/agent.sh"], "agent-py": ["/agents/agent.py", "beat"]}
    for name, command in agents.items():
        env = [{"name": "SUPERVISION_HEARTBEAT_FILE", "value": f"{SHARED}/beat"}]
        has_beaten = {"exec": {"command": ["test", "-e", f"{SHARED}/beat"]}, "periodSeconds": 1}
        agent = a_container("", command=command, env=env, readinessProbe=has_beaten)
        node_kubectl.create(a_pod(name, agent))
    for name in agents:
        node_kubectl.wait(f"pod/{name}", "condition=Ready")


def test_an_agent_is_frozen_from_the_host_while_its_pod_answers(
    node: Cluster, node_kubectl: Kubectl
) -> None:
    node_kubectl.create(a_pod("worker"))
    node_kubectl.wait("pod/worker", "condition=Ready")
    pod = node_kubectl.get("pod", "worker")
    pids = faults.freeze(node, pod)
    assert [state(pid) for pid in pids] == ["T"]
    assert node_kubectl("exec", "worker", "--", "echo", "beside it").out == "beside it\n"
    assert node_kubectl.get("pod", "worker")["status"]["phase"] == "Running"
    assert faults.thaw(node, pod) == pids
    assert "T" not in [state(pid) for pid in pids]
