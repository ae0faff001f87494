"""Pods' own tokens, and an agent that beats with one, as the code in a pod would."""

from __future__ import annotations

import http.client
import json
import ssl
import tempfile
import time
from base64 import b64decode
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from supervisor_operator.kube.cluster import HEARTBEATS
from tests.cluster.local import Cluster
from tests.support.kubeconfig import read_kubeconfig
from tests.support.kubectl import Kubectl

MERGE = "application/merge-patch+json"
IDLE_SECONDS = 30.0
"""An API server hangs up on who was silent for 90 s, and a request may meet that."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: Json

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


def view_kubeconfig(kubectl: Kubectl) -> Json:
    """The kubeconfig in use, with certificates as data."""
    return kubectl("config", "view", "--raw", "--minify", "--flatten", "--output=json").json


def pod_token(kubectl: Kubectl, pod: Json, account: str = "default") -> str:
    """A token like the one that is mounted into this very pod."""
    with Admin(kubectl) as admin:
        return admin.pod_token(pod, account)


class Line:
    """One connection to the API server in somebody's name; `with` closes it."""

    def __init__(self, server: str, context: ssl.SSLContext, token: str | None) -> None:
        self._headers = {"Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        netloc = urlsplit(server).netloc
        self._line = http.client.HTTPSConnection(netloc, context=context, timeout=30)
        self._used = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._line.close()

    def ask(self, method: str, path: str, body: object = None, kind: str = "") -> Reply:
        kind = kind or (MERGE if method == "PATCH" else "application/json")
        text = None if body is None else json.dumps(body)
        if time.monotonic() - self._used > IDLE_SECONDS:
            self._line.close()  # the next request opens it again
        try:
            self._line.request(method, path, text, self._headers | {"Content-Type": kind})
            answer = self._line.getresponse()
            return Reply(answer.status, json.loads(answer.read()))
        except BaseException:
            self._line.close()
            raise
        finally:
            self._used = time.monotonic()


class Admin(Line):
    """Whoever the kubeconfig is for, without the cost of a kubectl for each question."""

    def __init__(self, kubectl: Kubectl) -> None:
        with tempfile.TemporaryDirectory() as folder:
            access = read_kubeconfig(Path(kubectl.cluster.kubeconfig), Path(folder))
        super().__init__(access.server, access.context, access.token)
        self._core = f"/api/v1/namespaces/{kubectl.namespace}"

    def pods(self) -> dict[str, Json]:
        reply = self.ask("GET", f"{self._core}/pods")
        return {pod["metadata"]["name"]: pod for pod in reply.body["items"]}

    def pod_token(self, pod: Json, account: str = "default") -> str:
        metadata = pod["metadata"]
        whom = {"name": metadata["name"], "uid": metadata["uid"]}
        bound = {"apiVersion": "v1", "kind": "Pod"} | whom
        path = f"{self._core}/serviceaccounts/{account}/token"
        reply = self.ask("POST", path, {"spec": {"boundObjectRef": bound}})
        assert reply.status == http.client.CREATED, reply.message
        return str(reply.body["status"]["token"])


class Agent(Line):
    """Holds the token of a pod."""

    def __init__(self, kubectl: Kubectl, name: str, token: str) -> None:
        server, context = _server_of(kubectl.cluster)
        super().__init__(server, context, token)
        self.name = name
        self.namespace = kubectl.namespace

    @classmethod
    def of(cls, kubectl: Kubectl, pod: Json) -> Self:
        return cls(kubectl, pod["metadata"]["name"], pod_token(kubectl, pod))

    def beat(
        self, *, sequence: int = 1, age_millis: int = 0, name: str = "", **fields: Any
    ) -> Reply:
        """PATCH the status of the Heartbeat of this name, else of our own."""
        now = datetime.now(UTC).isoformat()  # noqa: TID251 - a relay reads its own clock
        beat = {"sequence": sequence, "beatAgeMillis": age_millis, "relayTime": now}
        path = f"{self.path(HEARTBEATS.prefix, HEARTBEATS.plural)}/{name or self.name}/status"
        return self.ask("PATCH", path, {"status": beat | fields})

    def path(self, prefix: str, plural: str) -> str:
        return f"{prefix}/namespaces/{self.namespace}/{plural}"


@cache
def _server_of(cluster: Cluster) -> tuple[str, ssl.SSLContext]:
    """Where the API server is and whom it is vouched for by, without anybody's credentials."""
    found = view_kubeconfig(Kubectl(cluster, "default"))["clusters"][0]["cluster"]
    authority = b64decode(found["certificate-authority-data"]).decode()
    return found["server"], ssl.create_default_context(cadata=authority)
