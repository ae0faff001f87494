"""One kept TLS connection, and as much HTTP/1.1 over it as the relay speaks.

http.client would do the same, but takes the relay over its 20 MiB: it brings a parser of mail.
"""

import socket
import ssl
from typing import NamedTuple

MAX_LINE = 8 * 1024
MAX_LINES = 100
MAX_BODY = 1024 * 1024


class Answer(NamedTuple):
    code: int
    reason: str
    body: bytes


class Garbled(OSError):  # noqa: N818 - says what it found
    """What came back is not HTTP as we know it."""


class Wire:
    def __init__(self, host: str, port: int, context: ssl.SSLContext, timeout: float) -> None:
        self._host = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        plain = socket.create_connection((host, port), timeout)
        self._socket = context.wrap_socket(plain, server_hostname=host)
        self._answers = self._socket.makefile("rb")
        self.usable = True

    def close(self) -> None:
        self.usable = False
        self._answers.close()
        self._socket.close()

    def patch(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        fields = {"Host": self._host, **headers, "Content-Length": str(len(body))}
        lines = [f"PATCH {path} HTTP/1.1", *(f"{name}: {fields[name]}" for name in fields)]
        try:
            self._socket.sendall("\r\n".join([*lines, "", ""]).encode("ascii") + body)
            return self._answer()
        except BaseException:  # a signal too must not leave half an exchange behind
            self.close()
            raise

    def _answer(self) -> Answer:
        version, _, rest = self._line().partition(" ")
        code, _, reason = rest.partition(" ")
        if not version.startswith("HTTP/1.") or not code.isdecimal():
            raise Garbled(f"no HTTP: {version[:40]}")
        fields = self._fields()
        body = self._body(fields)
        if fields.get("connection", "").lower() == "close" or version == "HTTP/1.0":
            self.close()
        return Answer(int(code), reason, body)

    def _line(self) -> str:
        line = self._answers.readline(MAX_LINE)
        if not line:
            raise ConnectionResetError("the connection was closed")
        if not line.endswith(b"\n"):
            raise Garbled("a line is too long or broken off")
        return line.decode("latin-1").strip()

    def _fields(self) -> dict[str, str]:
        fields: dict[str, str] = {}
        for _ in range(MAX_LINES):
            line = self._line()
            if not line:
                return fields
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
        raise Garbled("there are too many header lines")

    def _body(self, fields: dict[str, str]) -> bytes:
        if fields.get("transfer-encoding", "").lower() == "chunked":
            return self._chunks()
        if "content-length" in fields:
            return self._exactly(_size(fields["content-length"], 10), MAX_BODY)
        self.usable = False  # it lasts as long as the connection
        return self._answers.read(MAX_BODY)

    def _chunks(self) -> bytes:
        body = b""
        while size := _size(self._line().partition(";")[0], 16):
            body += self._exactly(size, MAX_BODY - len(body))
            self._line()
        self._fields()
        return body

    def _exactly(self, size: int, most: int) -> bytes:
        if size > most:
            raise Garbled("the answer is too large")
        body = self._answers.read(size)
        if len(body) < size:
            raise Garbled("the answer is broken off")
        return body


def _size(word: str, base: int) -> int:
    try:
        size = int(word, base)
    except ValueError:
        size = -1
    if size < 0:
        raise Garbled(f"no size: {word[:40]}")
    return size
