"""`kopf run -m supervisor_operator.dev`: the whole operator under kopf's own command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.local import Cluster
from tests.support.builders import a_supervisor
from tests.support.kubectl import Kubectl

OPERATOR = Path(__file__).parents[2] / "operator"
COMMAND = ["kopf", "run", "-m", "supervisor_operator.dev", "--standalone", "-A"]
END_SECONDS = 20


@contextmanager
def kopf_run(kubeconfig: str, log: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = os.environ | {"KUBECONFIG": kubeconfig, "PYTHONPATH": str(OPERATOR)} | variables
    with log.open("wb") as out:
        command = [sys.executable, "-m", *COMMAND]
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_an_agent_gets_its_pod_and_the_process_ends_when_told(
    control: Cluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    kubectl.create(a_supervisor("hello", heartbeat={"source": "None"}))
    log = tmp_path / "log"
    with kopf_run(str(control.kubeconfig), log) as process:
        kubectl.wait("supervisor/hello", "jsonpath={.status.phase}=SPAWNING")
        assert kubectl.get("pod", "hello-r1")["metadata"]["labels"]["supervision.dev/run"] == "1"
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_SECONDS) == 0, log.read_text()
    assert "Traceback" not in log.read_text()
    assert "Hung" not in log.read_text(), "kopf had to end tasks of ours"
    annotations = kubectl.get("supervisor", "hello")["metadata"].get("annotations", {})
    assert not annotations, "kopf left its marks on the user's object"


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"SUPERVISOR_OPERATOR_NAMESPACE": "nowhere"}, "there is no namespace nowhere"),
        ({"SUPERVISOR_OPERATOR_WORKERS": "none"}, "SUPERVISOR_OPERATOR_WORKERS: 'none'"),
    ],
)
def test_a_cluster_or_setting_that_does_not_fit_ends_it_with_words(
    control: Cluster, tmp_path: Path, variables: dict[str, str], words: str
) -> None:
    log = tmp_path / "log"
    with kopf_run(str(control.kubeconfig), log, **variables) as process:
        assert process.wait(END_SECONDS) != 0
    assert words in log.read_text()
