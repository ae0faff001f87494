"""Pods' own tokens, and an agent that beats with one, as the code in a pod would."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import urlsplit

from supervisor_operator.kube.cluster import HEARTBEATS
from tests.support.kubectl import Kubectl

MERGE = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: dict[str, Any]

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


def view_kubeconfig(kubectl: Kubectl) -> dict[str, Any]:
    """The kubeconfig in use, with certificates as data."""
    return kubectl("config", "view", "--raw", "--minify", "--flatten", "--output=json").json


def pod_token(kubectl: Kubectl, pod: dict[str, Any], account: str = "default") -> str:
    """A token like the one that is mounted into this very pod."""
    metadata = pod["metadata"]
    bound = {"kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
    flags = [f"--bound-object-{key}={word}" for key, word in bound.items()]
    return kubectl("create", "token", account, *flags).out.strip()


class Agent:
    """Holds a token and one connection; `with` closes it."""

    def __init__(self, kubectl: Kubectl, name: str, token: str) -> None:
        cluster = view_kubeconfig(kubectl)["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        server = urlsplit(cluster["server"]).netloc
        self.name = name
        self.namespace = kubectl.namespace
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._line = http.client.HTTPSConnection(server, context=context, timeout=30)

    @classmethod
    def of(cls, kubectl: Kubectl, pod: dict[str, Any]) -> Self:
        return cls(kubectl, pod["metadata"]["name"], pod_token(kubectl, pod))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._line.close()

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

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Reply:
        kind = MERGE if method == "PATCH" else "application/json"
        text = None if body is None else json.dumps(body)
        try:
            self._line.request(method, path, text, self._headers | {"Content-Type": kind})
            answer = self._line.getresponse()
            return Reply(answer.status, json.loads(answer.read()))
        except BaseException:
            self._line.close()
            raise
