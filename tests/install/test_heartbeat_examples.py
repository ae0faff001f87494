"""The examples of docs/heartbeats.md, taken from the page and run: each of them beats."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from base64 import b64decode
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from supervise.beatfile import read
from tests.cluster.places import CHECKOUT
from tests.support.builders import a_supervisor
from tests.support.kubectl import Kubectl
from tests.support.tokens import pod_token, view_kubeconfig

PAGE = (CHECKOUT / "docs/heartbeats.md").read_text()
BLOCKS = dict(re.findall(r"```(sh|python|go|js|bash)\n(.*?)```", PAGE, re.DOTALL))
COMMANDS = {
    "sh": ["sh"],
    "python": [sys.executable],
    "go": ["go", "run"],
    "js": ["node"],
}
BEAT_SECONDS = 60.0
"""Go compiles first."""


@pytest.mark.parametrize("language", COMMANDS)
def test_an_example_beats_again_and_again(language: str, tmp_path: Path) -> None:
    script, file = tmp_path / f"main.{language}", tmp_path / "heartbeat.json"
    script.write_text(BLOCKS[language])
    agent = subprocess.Popen(
        [*COMMANDS[language], str(script)],
        env=os.environ
        | {"SUPERVISION_HEARTBEAT_FILE": str(file), "SUPERVISION_INTERVAL_SECONDS": "2"},
        start_new_session=True,
    )
    try:
        seen: set[tuple[float, ...]] = set()
        deadline = time.monotonic() + BEAT_SECONDS
        while len(seen) < 3:
            assert time.monotonic() < deadline
            assert agent.poll() is None
            sighting = read(str(file))
            if sighting.beat:
                seen.add(sighting.beat.mark)
                metrics = sighting.metrics
            time.sleep(0.05)
        assert language == "sh" or metrics["turn"] >= 2
    finally:
        os.killpg(agent.pid, 9)
        agent.wait()


@pytest.mark.usefixtures("operator")
def test_curl_beats_with_the_pods_own_token(fake_kubectl: Kubectl, tmp_path: Path) -> None:
    fake_kubectl.create(a_supervisor(heartbeat={"source": "API", "intervalSeconds": 60}))
    fake_kubectl.wait("heartbeat/hello-r1", "create")
    found = view_kubeconfig(fake_kubectl)["clusters"][0]["cluster"]
    (tmp_path / "ca.crt").write_bytes(b64decode(found["certificate-authority-data"]))
    (tmp_path / "token").write_text(pod_token(fake_kubectl, fake_kubectl.get("pod", "hello-r1")))
    server = urlsplit(found["server"])
    surroundings = {
        "SUPERVISION_TOKEN_DIR": str(tmp_path),
        "SUPERVISION_NAMESPACE": fake_kubectl.namespace,
        "SUPERVISION_POD_NAME": "hello-r1",
        "KUBERNETES_SERVICE_HOST": str(server.hostname),
        "KUBERNETES_SERVICE_PORT": str(server.port),
    }
    done = subprocess.run(
        ["bash", "-euc", BLOCKS["bash"]],
        env=os.environ | surroundings,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    fake_kubectl.wait_status("hello", phase="ACTIVE", health="HEALTHY")


def test_every_example_is_run() -> None:
    assert len(re.findall("^```[a-z]+$", PAGE, re.MULTILINE)) == len(BLOCKS) == len(COMMANDS) + 1
