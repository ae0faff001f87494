"""`supervise relay` as a real process beside an API server, and an agent's file to beat into."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from supervise import clock
from tests.unit.supervise.api_server import LOOPBACK, ApiServer, serving
from tests.unit.supervise.harness import SUPERVISE, Run, started

PATH = "/apis/supervision.dev/v1alpha1/namespaces/farm/heartbeats/hello-r1/status"
FIRST_TOKEN = "first"  # noqa: S105 - opens nothing


class Pod:
    """The folders of a pod: one shared with the agent, one with the token."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "shared" / "heartbeat.json"
        self.file.parent.mkdir()
        self.tokens = folder / "tokens"
        self.tokens.mkdir()
        self.set_token(FIRST_TOKEN)

    def set_token(self, token: str) -> None:
        self._replace(self.tokens / "token", token)

    def trust(self, server: ApiServer) -> None:
        self._replace(self.tokens / "ca.crt", server.ca.read_text())

    def write(self, text: str) -> None:
        self._replace(self.file, text)

    def beat(self, age: float = 0, **fields: Any) -> None:
        self.write(json.dumps({"unix_ts": clock.wall() - age, **fields}))

    def _replace(self, path: Path, text: str) -> None:
        draft = path.with_name("draft")
        draft.write_text(text)
        draft.replace(path)


def environment(pod: Pod, server: ApiServer, interval: float) -> dict[str, str]:
    return {
        "SUPERVISION_HEARTBEAT_FILE": str(pod.file),
        "SUPERVISION_INTERVAL_SECONDS": str(interval),
        "SUPERVISION_POD_NAME": "hello-r1",
        "SUPERVISION_NAMESPACE": "farm",
        "SUPERVISION_TOKEN_DIR": str(pod.tokens),
        "KUBERNETES_SERVICE_HOST": LOOPBACK,
        "KUBERNETES_SERVICE_PORT": str(server.port),
    }


@contextmanager
def relaying(
    pod: Pod,
    server: ApiServer,
    interval: float = 0.2,
    powerless: tuple[str, ...] = (),
    changed: Mapping[str, str] | None = None,
) -> Iterator[Run]:
    variables = {**environment(pod, server, interval), **(changed or {})}
    command = [*powerless, *SUPERVISE, "relay", "--json"]
    with started(pod.folder / "relay", command, variables) as run:
        run.until_event("relaying")
        yield run


@contextmanager
def a_pod(folder: Path, **settings: Any) -> Iterator[tuple[Pod, ApiServer]]:
    """Make a pod and an API server that it trusts."""
    folder.mkdir(exist_ok=True)
    pod = Pod(folder)
    with serving(folder / "server", **settings) as server:
        pod.trust(server)
        yield pod, server


def told(run: Run, event: str) -> list[str]:
    return [each["message"] for each in run.events(event)]
