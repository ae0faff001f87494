"""The way from the relay to its Heartbeat: one kind of request, and what its answers mean.

The token is read for each request and the CA for each connection: the kubelet replaces both.
"""

import json
import os
import ssl
from typing import Any

from supervise.contract import CA_FILE, TOKEN_FILE
from supervise.pod import Pod
from supervise.wire import Answer, Wire

OK, NOT_FOUND, TOO_MANY, SERVER_ERRORS = 200, 404, 429, 500
UNFIT = (400, 413, 422)
MAX_REASON_LENGTH = 300


class Trouble(Exception):  # noqa: N818 - says what it found
    """A report did not arrive, and why."""


class NotYet(Trouble):
    """The operator has not made our Heartbeat yet."""


class Wrong(Trouble):
    """Somebody has to change something; told to people wherever we can."""


class Unfit(Wrong):
    """The API server cannot take what we wrote; less might do."""


class Uplink:
    def __init__(self, pod: Pod) -> None:
        self._pod = pod
        self._timeout = min(max(pod.interval, 1.0), 10.0)
        self._wire: Wire | None = None

    def patch(self, status: dict[str, Any]) -> dict[str, Any]:
        """Merge this into the status of our Heartbeat; return the status as it is then."""
        if self._pod.obstacle:
            raise Wrong(self._pod.obstacle)
        body = json.dumps({"status": status}).encode()
        headers = {
            "Authorization": f"Bearer {self._token()}",
            "Content-Type": "application/merge-patch+json",
            "Accept": "application/json",
            "User-Agent": "supervise-relay",
        }
        try:
            answer = self._ask(headers, body)
        except (OSError, ValueError) as error:
            where = f"{self._pod.host}:{self._pod.port}"
            raise Trouble(f"no answer from {where}: {error}") from error
        return _understand(answer)

    def _ask(self, headers: dict[str, str], body: bytes) -> Answer:
        if self._wire and self._wire.usable:
            try:
                return self._wire.patch(self._pod.path, headers, body)
            except TimeoutError:
                raise
            except OSError:
                """The server may have closed it while nobody spoke; a new one will tell."""
        self._wire = Wire(self._pod.host, self._pod.port, self._context(), self._timeout)
        return self._wire.patch(self._pod.path, headers, body)

    def _token(self) -> str:
        path = os.path.join(self._pod.token_folder, TOKEN_FILE)
        try:
            with open(path, encoding="ascii") as opened:
                words = opened.read().split()
        except (OSError, ValueError) as error:
            raise Wrong(f"cannot read the token file {path}: {error}") from error
        if len(words) != 1:
            raise Wrong(f"the token file {path} {'holds no token' if words else 'is empty'}")
        return words[0]

    def _context(self) -> ssl.SSLContext:
        path = os.path.join(self._pod.token_folder, CA_FILE)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(path)
        except OSError as error:
            raise Wrong(f"cannot use the CA file {path}: {error}") from error
        return context


def _understand(answer: Answer) -> dict[str, Any]:
    content = _fields(answer.body)
    if answer.code == OK:
        return _fields(content.get("status"))
    if answer.code == NOT_FOUND:
        raise NotYet("there is no Heartbeat of this pod yet")
    reason = str(content.get("message") or answer.reason)[:MAX_REASON_LENGTH]
    message = f"the API server says {answer.code}: {reason}"
    if answer.code == TOO_MANY or answer.code >= SERVER_ERRORS:
        raise Trouble(message)
    raise Unfit(message) if answer.code in UNFIT else Wrong(message)


def _fields(content: Any) -> dict[str, Any]:
    """Return the object that this is, or stands for as JSON; anything else is an empty one."""
    if isinstance(content, bytes):
        try:
            content = json.loads(content)
        except (ValueError, RecursionError):
            return {}
    return content if isinstance(content, dict) else {}
