"""The process: how it starts, why it refuses to, what its probes say, who leads, how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from tests.cluster.places import CHECKOUT
from tests.support.api_call import Call
from tests.support.behind_proxy import Troubled, behind_proxy
from tests.support.builders import a_supervisor
from tests.support.install import NAMESPACE
from tests.support.kubeconfig import write_plain_kubeconfig
from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess
from tests.support.proxy import ApiProxy

NONE = {"source": "None"}
END_SECONDS = 3
LEASE_SECONDS = 3
TIMES = (f"--lease-seconds={LEASE_SECONDS}", "--renew-seconds=2", "--retry-seconds=0.3")


@pytest.fixture
def troubled(fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path) -> Iterator[Troubled]:
    with behind_proxy(fake_kubectl, operator_access, tmp_path) as found:
        yield found


def run(*flags: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The program, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "supervisor_operator", *flags],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT / "operator")} | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def readiness(operator: OperatorProcess) -> str:
    try:
        return operator.get("/readyz")
    except urllib.error.HTTPError as refusal:
        with refusal:
            return f"{refusal.code} {refusal.read().decode()}"


def test_help_lists_the_flags() -> None:
    done = run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--namespace" in done.stdout
    assert "SUPERVISOR_OPERATOR_HTTP_PORT" in done.stdout


def test_an_invalid_flag_or_variable_is_named() -> None:
    by_flag = run("--workers=none")
    assert by_flag.returncode == 2
    assert "--workers: 'none' is not allowed; allowed is a whole number" in by_flag.stderr
    by_variable = run(SUPERVISOR_OPERATOR_LOG_LEVEL="loud")
    assert by_variable.returncode == 2
    assert "SUPERVISOR_OPERATOR_LOG_LEVEL: 'loud' is not allowed" in by_variable.stderr
    assert run("--no-such-flag").returncode == 2


def test_an_unknown_namespace_ends_it(operator_access: Path) -> None:
    done = run(f"--kubeconfig={operator_access}", "--namespace=nowhere", "--http-port=0")
    assert done.returncode == 1
    assert "there is no namespace nowhere: create it or name another" in done.stderr


def test_missing_crds_end_it_with_the_command_to_run(operator_access: Path) -> None:
    with ApiProxy(operator_access) as proxy:
        proxy.refuse(lambda call: call.group == "supervision.dev", 404, "not found", times=None)
        started = time.monotonic()
        done = run(f"--kubeconfig={proxy.kubeconfig}", "--http-port=0", "--crd-wait-seconds=2")
    assert done.returncode == 1
    assert time.monotonic() - started >= 2
    assert "supervisors, supervisorteams, heartbeats are not installed" in done.stderr
    assert "kubectl apply --server-side -f crds/" in done.stderr


def test_an_old_server_ends_it(tmp_path: Path) -> None:
    with a_server_of_version("1", "31+") as url:
        kubeconfig = write_plain_kubeconfig(tmp_path / "config", url)
        done = run(f"--kubeconfig={kubeconfig}", "--http-port=0")
    assert done.returncode == 1
    assert "the API server is Kubernetes 1.31, 1.32 or newer is needed" in done.stderr


@contextmanager
def a_server_of_version(major: str, minor: str) -> Iterator[str]:
    class Old(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"major": major, "minor": minor}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        @override
        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Old) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_server_that_never_answers_ends_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    kubeconfig = write_plain_kubeconfig(tmp_path / "config", f"http://127.0.0.1:{port}")
    done = run(f"--kubeconfig={kubeconfig}", "--http-port=0", "--crd-wait-seconds=1")
    assert done.returncode == 1
    assert "the API server does not answer" in done.stderr
    assert "Traceback" not in done.stderr


def is_any(_: Call) -> bool:
    return True


def test_the_api_server_is_away_at_the_start(
    fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path
) -> None:
    with ApiProxy(operator_access) as proxy:
        away = proxy.refuse(is_any, 503, "starting up", times=None)
        flag = f"--namespace={fake_kubectl.namespace}"
        operator = OperatorProcess(proxy.kubeconfig, tmp_path / "operator.log", flag)
        operator.start()
        try:
            operator.until(lambda: away.refused >= 2)
            assert operator.get("/healthz") == "ok", "it waits, and lives"
            away.times = 0
            operator.ready()
        finally:
            operator.kill()


def test_the_api_server_is_away_for_a_while(troubled: Troubled, fake_kubectl: Kubectl) -> None:
    operator, proxy = troubled.operator, troubled.proxy
    fake_kubectl.create(a_supervisor(heartbeat=NONE))
    fake_kubectl.wait_status("hello", phase="ACTIVE")
    away = proxy.refuse(is_any, 503, "down", times=None)
    proxy.cut_watches()
    fake_kubectl("label", "pod", "hello-r1", "fake.test/exit-code=0")
    operator.until(lambda: away.refused >= 5)
    away.times = 0
    found = fake_kubectl.wait_status("hello", phase="TERMINATED")
    assert found["status"]["run"] == 1
    assert "Traceback" not in operator.log


def test_probes_say_what_is_wrong(
    fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path
) -> None:
    with ApiProxy(operator_access) as proxy:

        def lists_pods(call: Call) -> bool:
            return call.plural == "pods"

        refusal = proxy.refuse(lists_pods, 503, "not yet", times=None)
        flag = f"--namespace={fake_kubectl.namespace}"
        operator = OperatorProcess(proxy.kubeconfig, tmp_path / "operator.log", flag)
        operator.start()
        try:
            unlisted = "503 watches: pods are not listed yet"
            operator.until(lambda: refusal.refused > 0 and readiness(operator) == unlisted)
            assert operator.get("/healthz") == "ok"
            refusal.times = 0
            operator.ready()
            operator.until(lambda: readiness(operator) == "ok")
            assert "resync: ok" in operator.get("/healthz?verbose")
            assert "watches: ok\nsupervisors: ok" in operator.get("/readyz?verbose")
        finally:
            operator.kill()


def test_json_logs_name_the_object(
    fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path
) -> None:
    with behind_proxy(fake_kubectl, operator_access, tmp_path, "--log-format=json") as troubled:
        fake_kubectl.create(a_supervisor(heartbeat=NONE))
        fake_kubectl.wait_status("hello", phase="ACTIVE")
        assert troubled.operator.stop() == 0
        lines = [json.loads(line) for line in troubled.operator.log.splitlines()]
    spawned = next(line for line in lines if line["message"].startswith("Spawned"))
    assert spawned["object"] == f"Supervisor {fake_kubectl.namespace}/hello"
    assert spawned["level"] == "info"


@pytest.fixture
def pair(
    fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path
) -> Iterator[tuple[OperatorProcess, OperatorProcess]]:
    """Two operators of one namespace, of which one may lead."""
    lease = fake_kubectl.namespace
    flags = (
        *(f"--namespace={lease}", "--leader-elect=true", f"--lease-name={lease}"),
        *(f"--lease-namespace={NAMESPACE}", *TIMES),
    )
    first, second = (
        OperatorProcess(operator_access, tmp_path / f"{name}.log", *flags)
        for name in ("first", "second")
    )
    yield first, second
    first.kill()
    second.kill()
    fake_kubectl("delete", "lease", lease, f"--namespace={NAMESPACE}")


def test_two_operators_one_works_and_the_other_follows(
    pair: tuple[OperatorProcess, OperatorProcess], fake_kubectl: Kubectl
) -> None:
    first, second = pair
    first.start().ready()
    second.start()
    second.until(lambda: "waits for lease" in second.log)
    fake_kubectl.create(a_supervisor("one", heartbeat=NONE))
    fake_kubectl.wait_status("one", phase="ACTIVE")
    assert second.get("/healthz") == "ok"
    assert "holds lease" not in second.log

    died = time.monotonic()
    first.signal(signal.SIGKILL)
    second.ready()
    took = time.monotonic() - died
    assert took < LEASE_SECONDS + END_SECONDS
    fake_kubectl.create(a_supervisor("two", heartbeat=NONE))
    fake_kubectl.wait_status("two", phase="ACTIVE")
    assert "start two-r1" in second.log

    first.wait_end()
    first.start()
    first.until(lambda: "waits for lease" in first.log)
    asked = time.monotonic()
    assert second.stop() == 0
    assert time.monotonic() - asked < END_SECONDS
    first.ready()
    assert time.monotonic() - asked < END_SECONDS, "the lease was released"
    assert fake_kubectl.names("pods") == ["one-r1", "two-r1"]
