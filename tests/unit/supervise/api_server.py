"""An API server of one object: the Heartbeat of one pod, over real TLS on loopback.

It answers as it is told, keeps every request, and can be away for a while on the same port.
"""

import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from typing_extensions import override

from tests.cluster.certificates import Authority, Pair
from tests.unit.supervise.harness import until

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Request:
    moment: float
    path: str
    token: str
    kind: str
    status: dict[str, Any]
    code: int


@dataclass
class ApiServer:
    folder: Path
    port: int = 0
    code: int = 200
    hangs: bool = False
    refuses_metrics: bool = False
    way: str = "in one piece"  # of answering
    raw: bytes | None = None  # what is said instead of an answer
    accepted: int = 0
    stored: dict[str, Any] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    _server: "Server | None" = None

    def __post_init__(self) -> None:
        self._authority = Authority(self.folder)
        self.ca = self._authority.ca
        self.pair = self._authority.issue("server", "kubernetes", sans=[LOOPBACK])

    def start(self) -> None:
        self._server = Server(self, self.pair)
        self.port = self._server.server_address[1]
        self._server.thread.start()

    def stop(self) -> None:
        if self._server:
            self._server.end()
        self._server = None

    def drop_connections(self) -> None:
        if self._server:
            self._server.drop_connections()

    def arrived(self) -> list[dict[str, Any]]:
        return [request.status for request in self.requests if request.code == 200]

    def has_arrived(self, times: int) -> bool:
        return len(self.arrived()) >= times

    def until(self, what: str, **wanted: Any) -> dict[str, Any]:
        """Wait for a report with these fields and return it."""

        def found() -> list[dict[str, Any]]:
            return [
                status
                for status in self.arrived()
                if all(status.get(name, ...) == value for name, value in wanted.items())
            ]

        return until(found, f"{what}: a report with {wanted} among {self.requests}")[0]

    def until_refused(self, times: int) -> None:
        until(lambda: sum(each.code == self.code for each in self.requests) >= times, "refusals")


@contextmanager
def serving(folder: Path, **settings: Any) -> Iterator[ApiServer]:
    server = ApiServer(folder, **settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 32

    def __init__(self, api: ApiServer, pair: Pair) -> None:
        self.api = api
        self.ended = threading.Event()
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(pair.certificate, pair.key)
        self._open: set[socket.socket] = set()
        super().__init__((LOOPBACK, api.port), Handler)
        self.thread = threading.Thread(target=self.serve_forever, args=(0.02,))

    @override
    def get_request(self) -> tuple[socket.socket, Any]:
        plain, address = super().get_request()
        self.api.accepted += 1
        wrapped = self._tls.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        self._open.add(wrapped)
        return wrapped, address

    @override
    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that go away are what the tests are about."""

    def drop_connections(self) -> None:
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        self.shutdown()
        self.ended.set()
        self.drop_connections()
        self.server_close()
        self.thread.join()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_PATCH(self) -> None:
        api = self.server.api
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        code = 400 if api.refuses_metrics and body["status"].get("metrics") else api.code
        if code == 200:
            api.stored = merge(api.stored, body)
        token = self.headers["Authorization"].removeprefix("Bearer ")
        kind = self.headers["Content-Type"]
        api.requests.append(Request(time.monotonic(), self.path, token, kind, body["status"], code))
        if api.hangs:
            self.server.ended.wait()
            return
        if api.raw is not None:
            self.wfile.write(api.raw)
            self.close_connection = True
            return
        answer = api.stored if code == 200 else {"kind": "Status", "message": f"because of {code}"}
        self._say(code, json.dumps(answer).encode(), api.way)

    def _say(self, code: int, content: bytes, way: str) -> None:
        self.send_response(code)
        if way == "in chunks":
            self.send_header("Transfer-Encoding", "chunked")
            pieces = [content[at : at + 1000] for at in range(0, len(content), 1000)]
            content = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in [*pieces, b""])
        elif way != "until the end":
            self.send_header("Content-Length", str(len(content)))
        if way in {"and closes", "until the end"}:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def merge(old: Any, patch: Any) -> Any:
    """Apply a merge patch as RFC 7386 says."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged
