"""Real agents in real pods, supervised by the operator in the cluster.

Agents that need nobody to lead their lives are started together, before the first test.
"""

import json
import time
from collections.abc import Iterator

import pytest

from tests.cluster import faults
from tests.cluster.images import SAMPLE_AGENT
from tests.cluster.node import PAUSE_IMAGE
from tests.cluster.places import CHECKOUT
from tests.e2e.living import (
    AGENT,
    ALLOWED,
    GRACE,
    INTERVAL,
    QUICK,
    RELAY,
    a_template,
    an_agent,
    condition,
    create_all,
    sequence,
    status,
    until,
)
from tests.support.builders import a_supervisor
from tests.support.kstatus import kstatus
from tests.support.kubectl import Kubectl

HELLO = CHECKOUT / "manifests/samples/hello.yaml"
WORDS = "working on BTCUSDT"
TALKS = ("sh", "-c", f"echo {WORDS}; exec {AGENT}")
CRASHES = ("sh", "-c", "echo no such symbol >&2; exit 3")
BEATS_BY_ITSELF = """
import json, os, ssl, time, urllib.request
print(open(os.environ["SUPERVISION_CONFIG_FILE"]).read(), flush=True)
folder = os.environ["SUPERVISION_TOKEN_DIR"]
where = "https://{KUBERNETES_SERVICE_HOST}/apis/supervision.dev/v1alpha1/namespaces/"
where += "{SUPERVISION_NAMESPACE}/heartbeats/{SUPERVISION_POD_NAME}/status"
url = where.format(**os.environ)
context = ssl.create_default_context(cafile=folder + "/ca.crt")
sequence = 0
while True:
    sequence += 1
    body = json.dumps({"status": {"sequence": sequence, "beatAgeMillis": 0}}).encode()
    headers = {"Authorization": "Bearer " + open(folder + "/token").read()}
    headers["Content-Type"] = "application/merge-patch+json"
    request = urllib.request.Request(url, body, headers, method="PATCH")
    urllib.request.urlopen(request, timeout=5, context=context).read()
    time.sleep(float(os.environ["SUPERVISION_INTERVAL_SECONDS"]) / 2)
"""
CONFIG = {"symbols": ["BTCUSDT"], "limits": {"daily": 100}}
READ_ONLY = {"securityContext": {"readOnlyRootFilesystem": True}}
ELSEWHERE = [{"name": "SUPERVISION_HEARTBEAT_FILE", "value": "/elsewhere/heartbeat.json"}]


@pytest.fixture(scope="module", autouse=True)
def crowd(agents: Kubectl) -> Iterator[None]:
    agents("apply", "-f", str(HELLO))
    create_all(
        agents,
        an_agent("freezes", *TALKS),
        an_agent("crashes", *CRASHES, restart={"maxRestarts": 3}),
        an_agent("finishes", AGENT, "finish-after", "2"),
        an_agent("hopeless", AGENT, "freeze-after", "1", restart={"maxRestarts": 0}),
        an_agent("busy", AGENT, "busy", str(ALLOWED + 4), heartbeat={"maxBusySeconds": 30}),
        an_agent("api", "python3", "-c", BEATS_BY_ITSELF, heartbeat={"source": "API"})
        | {},
        an_agent("pauses"),
        an_agent("loses-relay"),
        an_agent("roots") | {},
    )
    yield


def test_x() -> None: ...
