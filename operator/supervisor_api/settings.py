"""The flags of the process."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from supervisor_operator.settings import LogFormat, LogLevel, version

PROGRAM = "supervisor-api"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    host: str = "127.0.0.1"
    port: int = 8443
    kubeconfig: Path | None = None
    namespaces: tuple[str | None, ...] = (None,)
    tls_cert: Path | None = None
    tls_key: Path | None = None
    plain_http: bool = False
    requests_per_second: float = 50.0
    burst: int = 100
    new_tokens_per_second: float = 20.0
    max_body_bytes: int = 1024 * 1024
    max_streams: int = 1000
    max_streams_per_token: int = 50
    stream_seconds: float = 15.0
    log_format: LogFormat = "text"
    log_level: LogLevel = "info"


def read_settings(argv: Sequence[str]) -> Settings:
    parser = _parser()
    words = parser.parse_args(argv)
    settings = Settings(
        host=words.host,
        port=words.port,
        kubeconfig=words.kubeconfig,
        namespaces=tuple(words.namespace) if words.namespace else (None,),
        tls_cert=words.tls_cert,
        tls_key=words.tls_key,
        plain_http=words.plain_http,
        requests_per_second=words.requests_per_second,
        burst=words.burst,
        new_tokens_per_second=words.new_tokens_per_second,
        max_body_bytes=words.max_body_bytes,
        max_streams=words.max_streams,
        max_streams_per_token=words.max_streams_per_token,
        stream_seconds=words.stream_seconds,
        log_format=words.log_format,
        log_level=words.log_level,
    )
    if (settings.tls_cert is None) != (settings.tls_key is None):
        parser.error("--tls-cert and --tls-key go together: give both or none")
    if not (settings.tls_cert or settings.plain_http or _is_loopback(settings.host)):
        parser.error(
            f"--host {settings.host} is no loopback address, and callers' tokens would travel in"
            " the clear: give --tls-cert and --tls-key, or --plain-http inside a cluster you trust"
        )
    return settings


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="See and steer supervised agents over HTTP. Each caller brings a Kubernetes"
        " token and has the rights of that token, no more.",
        allow_abbrev=False,
    )
    add, default = parser.add_argument, Settings()
    add("--version", action="version", version=f"{PROGRAM} {version()}")
    add("--host", default=default.host, help="address to listen on (default: %(default)s)")
    add("--port", type=_at_least(0), default=default.port, help="port; 0 = any, see the log")
    add("--kubeconfig", type=_file, help="how to reach the cluster (default: as a pod of it)")
    add("--namespace", action="append", help="know this namespace only; may be repeated")
    add("--tls-cert", type=_file, help="certificate chain to serve HTTPS with")
    add("--tls-key", type=_file, help="its private key")
    add("--plain-http", action="store_true", help="serve other hosts without TLS")
    add(
        "--requests-per-second",
        type=float,
        default=default.requests_per_second,
        help="per token (default: %(default)g)",
    )
    add(
        "--burst",
        type=_at_least(1),
        default=default.burst,
        help="so many at once after a quiet time (default: %(default)d)",
    )
    add(
        "--new-tokens-per-second",
        type=float,
        default=default.new_tokens_per_second,
        help="per address, tokens that were not seen before (default: %(default)g)",
    )
    add(
        "--max-body-bytes",
        type=_at_least(1),
        default=default.max_body_bytes,
        help="longest request (default: %(default)d)",
    )
    add(
        "--max-streams",
        type=_at_least(0),
        default=default.max_streams,
        help="readers of /events at once (default: %(default)d)",
    )
    add(
        "--max-streams-per-token",
        type=_at_least(0),
        default=default.max_streams_per_token,
        help="of these with the same token (default: %(default)d)",
    )
    add(
        "--stream-seconds",
        type=float,
        default=default.stream_seconds,
        help="a quiet stream shows life, and its token is looked at again, this often"
        " (default: %(default)g)",
    )
    add("--log-format", choices=("text", "json"), default=default.log_format)
    levels = ("debug", "info", "warning", "error")
    add("--log-level", choices=levels, default=default.log_level)
    return parser


def _file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return path


class _at_least:  # noqa: N801 - reads as a function
    def __init__(self, least: int) -> None:
        self._least = least

    def __call__(self, text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = self._least - 1
        if number < self._least:
            raise argparse.ArgumentTypeError(f"{text}: a number from {self._least} on is needed")
        return number
