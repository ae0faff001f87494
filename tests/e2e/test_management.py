"""The management API as its users run it: from the image, in a pod, reached by port-forward."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.builders import a_supervisor
from tests.support.in_cluster import API, API_DEPLOYMENT, ROLLOUT_SECONDS
from tests.support.kubectl import Kubectl
from tests.support.page_command import LINK, page_command, wait_for

PORT = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+)")
Json = dict[str, Any]


@pytest.fixture(scope="module")
def address(operator_kubectl: Kubectl) -> Iterator[str]:
    kubectl = operator_kubectl
    kubectl("apply", "--server-side", "-k", str(API))
    kubectl("rollout", "status", API_DEPLOYMENT, f"--timeout={ROLLOUT_SECONDS}s")
    command = [kubectl.cluster.kubectl, f"--kubeconfig={kubectl.cluster.kubeconfig}"]
    command += [f"--namespace={kubectl.namespace}", "port-forward", "svc/supervisor-api", ":8443"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forward:
        assert forward.stdout is not None
        found = PORT.search(forward.stdout.readline())
        assert found, "no port was forwarded"
        yield f"http://127.0.0.1:{found[1]}/api/v1"
        forward.terminate()
    kubectl("delete", "-k", str(API), "--wait=false")


def ask(url: str, token: str = "", method: str = "GET", body: Json | None = None) -> Json:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    headers["Content-Type"] = "application/json"
    where = urlsplit(url)
    with closing(http.client.HTTPConnection(where.netloc, timeout=10)) as line:
        line.request(method, where.path, json.dumps(body) if body else None, headers)
        answer = line.getresponse()
        found: Json = json.loads(answer.read() or b"{}")
    return {"code": answer.status} | found


def a_token(kubectl: Kubectl, name: str, role: str = "") -> str:
    kubectl("create", "serviceaccount", name)
    if role:
        whom = f"--serviceaccount={kubectl.namespace}:{name}"
        kubectl("create", "rolebinding", name, f"--clusterrole={role}", whom)
    return kubectl("create", "token", name).out.strip()


def test_see_and_steer_a_real_agent_with_ones_own_token(address: str, agents: Kubectl) -> None:
    editor, stranger = a_token(agents, "editor", "edit"), a_token(agents, "stranger")
    item = a_supervisor(
        "hello", agent={"image": "localhost/sample-agent:dev"}, heartbeat={"intervalSeconds": 1}
    )
    new = {"name": "hello", "namespace": agents.namespace, "spec": item["spec"]}
    made = ask(f"{address}/supervisors", editor, "POST", new)
    assert made["code"] == 201, made
    agents.wait_status("hello", phase="ACTIVE", health="HEALTHY")
    here = f"{address}/namespaces/{agents.namespace}/supervisors/hello"
    agents.wait("sup/hello", "jsonpath={.status.conditions[?(@.type=='Ready')].status}=True")
    health = ask(f"{here}/health", editor)
    assert (health["code"], health["level"], health["phase"]) == (200, "HEALTHY", "ACTIVE")
    assert ask(f"{here}/pause", editor, "POST")["code"] == 200
    agents.wait_status("hello", phase="PAUSED")
    assert ask(f"{here}/health")["code"] == 401
    refused = ask(f"{here}/health", stranger)
    assert refused["code"] == 403
    assert "stranger" in refused["detail"], "in the API server's own words"


def test_the_page_through_a_port_forward_of_its_command(
    address: str, agents: Kubectl, tmp_path: Path
) -> None:
    assert address, "the API is deployed"
    a_token(agents, "viewer", "edit")
    words = [f"--kubeconfig={agents.cluster.kubeconfig}", "-n", agents.namespace]
    path = f"{Path(agents.cluster.kubectl).parent}:{os.environ['PATH']}"
    with page_command(*words, "--account=viewer", "--no-browser", folder=tmp_path, PATH=path):
        link = wait_for(tmp_path / "said", LINK.pattern)
        with closing(http.client.HTTPConnection(urlsplit(link[1]).netloc, timeout=10)) as line:
            line.request("GET", "/")
            assert b"<title>Supervision</title>" in line.getresponse().read()
            line.request("POST", "/signin", link[2], {"Origin": link[1].rstrip("/")})
            given = json.loads(line.getresponse().read())
            headers = {"Authorization": f"Bearer {given['token']}"}
            line.request("GET", f"/api/v1/snapshot?namespace={agents.namespace}", headers=headers)
            assert line.getresponse().status == http.client.OK
