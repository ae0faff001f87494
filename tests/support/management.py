"""The management API as a process with its own account, and people with real tokens who call it."""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from supervisor_api.service import Service
from supervisor_api.settings import Settings
from tests.cluster.local import Cluster
from tests.cluster.places import CHECKOUT
from tests.support.install import MANIFESTS, NAMESPACE, TOKEN_LIFE
from tests.support.kubectl import Kubectl
from tests.support.tokens import view_kubeconfig

ACCOUNT = "supervisor-api"
PORT = re.compile(r"on https?://\S+:(\d+)")
READY_SECONDS = 60.0
LOOK_SECONDS = 0.02
OURS = "supervisors,supervisorteams,heartbeats"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody with a token, or without; speaks to the API on a connection per call."""

    port: int
    token: str | None = None
    trust: ssl.SSLContext | None = None
    """For HTTPS."""

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        line, answer = self._send(method, path, body, headers)
        try:
            content = answer.read()
        finally:
            line.close()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, found, content)

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers=headers)

    @contextmanager
    def stream(self, path: str, after: str | None = None) -> Iterator[Stream]:
        headers = {"Last-Event-ID": after} if after else {}
        line, answer = self._send("GET", path, None, headers)
        try:
            assert answer.status == http.client.OK, answer.read()
            yield Stream(answer)
        finally:
            line.close()

    def _send(
        self, method: str, path: str, body: Any, headers: dict[str, str] | None
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        known = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        content = body
        if isinstance(body, dict | list):
            content, known["Content-Type"] = json.dumps(body), "application/json"
        line = (
            http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=self.trust)
            if self.trust
            else http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        )
        line.request(method, path, content, known | (headers or {}))
        return line, line.getresponse()


@dataclass(slots=True)
class Stream:
    answer: http.client.HTTPResponse
    seen: list[Json] = field(default_factory=list)

    def next(self) -> Json | None:
        """The next event with its id, type and data; None at the end."""
        found: Json = {}
        while line := self.answer.readline():
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name in {"id", "event", "data"}:
                found[name] = value
            elif not line.strip() and found:
                found["data"] = json.loads(found["data"])
                self.seen.append(found)
                return found
        return None

    def until(self, kind: str) -> Json:
        while found := self.next():
            if found["event"] == kind:
                return found
        raise AssertionError(f"the stream ended without {kind}: {self.seen}")


class ApiProcess:
    def __init__(
        self, kubeconfig: Path, log: Path, *flags: str, trust: ssl.SSLContext | None = None
    ) -> None:
        self._trust = trust
        self._log_file = log
        self._command = [
            *(sys.executable, "-m", "supervisor_api", f"--kubeconfig={kubeconfig}", "--port=0"),
            *flags,
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log_file.read_text()

    def start(self) -> None:
        with self._log_file.open("wb") as output:
            self._process = subprocess.Popen(
                self._command,
                stdout=output,
                stderr=output,
                env=os.environ | {"PYTHONPATH": str(CHECKOUT / "operator")},
            )
        deadline = time.monotonic() + READY_SECONDS
        while not self._is_ready():
            assert self._process.poll() is None, f"the API ended: {self.log[-2000:]}"
            assert time.monotonic() < deadline, f"not ready: {self.log[-2000:]}"
            time.sleep(LOOK_SECONDS)

    def _is_ready(self) -> bool:
        found = PORT.search(self.log)
        if not found:
            return False
        self.port = int(found[1])
        try:
            return Caller(self.port, trust=self._trust).get("/readyz").status == http.client.OK
        except ConnectionError:
            return False

    def stop(self) -> int:
        assert self._process is not None
        self._process.terminate()
        try:
            return self._process.wait(20)
        finally:
            self._process.kill()
            self._process.wait()


def until(condition: Callable[[], bool], seconds: float = READY_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(LOOK_SECONDS)


@contextmanager
def serving(
    kubeconfig: Path, folder: Path, *flags: str, trust: ssl.SSLContext | None = None
) -> Iterator[ApiProcess]:
    process = ApiProcess(kubeconfig, folder / "api.log", *flags, trust=trust)
    try:
        process.start()
        yield process
    finally:
        process.stop()


def bare_service() -> Service:
    """Enough for the application to describe itself."""
    return cast("Service", SimpleNamespace(settings=Settings()))


def install_api(cluster: Cluster) -> None:
    """Its account and its rights, as the manifests have them."""
    kubectl = Kubectl(cluster, NAMESPACE)
    for path in (MANIFESTS / "base" / "namespace.yaml", MANIFESTS / "api" / "rbac.yaml"):
        kubectl("apply", "--server-side", "--force-conflicts", "-f", str(path))


def make_account(kubectl: Kubectl, name: str) -> str:
    """A ServiceAccount; its token."""
    kubectl("create", "serviceaccount", name)
    return token_of(kubectl, name)


def token_of(kubectl: Kubectl, name: str) -> str:
    return kubectl("create", "token", name, f"--duration={TOKEN_LIFE}").out.strip()


def write_kubeconfig(cluster: Cluster, token: str, path: Path) -> Path:
    config = view_kubeconfig(Kubectl(cluster, NAMESPACE))
    config["users"][0]["user"] = {"token": token}
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return path


def api_kubeconfig(cluster: Cluster, folder: Path) -> Path:
    token = token_of(Kubectl(cluster, NAMESPACE), ACCOUNT)
    return write_kubeconfig(cluster, token, folder / "api.kubeconfig")


def allow_in_namespace(kubectl: Kubectl, account: str) -> None:
    """All that can be done to our kinds here; pods, since agents are pods; their Events."""
    kinds = f"{OURS},pods,pods/log,events.events.k8s.io"
    kubectl("create", "role", account, "--verb=*", f"--resource={kinds}")
    subject = f"--serviceaccount={kubectl.namespace}:{account}"
    kubectl("create", "rolebinding", account, f"--role={account}", subject)


def allow_everything(kubectl: Kubectl, account: str) -> None:
    subject = f"--serviceaccount={kubectl.namespace}:{account}"
    name = f"{kubectl.namespace}-{account}"
    kubectl("create", "clusterrolebinding", name, "--clusterrole=cluster-admin", subject)
