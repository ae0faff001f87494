"""The settings of the process, read once from flags and environment before anything starts.

`Settings` holds names, types and defaults; the table of flags below it holds rules and help. A
wrong value ends the process with code 2 and one line that says what is allowed.
"""

from __future__ import annotations

import argparse
import re
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

from typing_extensions import override

PROGRAM = "supervisor-operator"
VARIABLE_PREFIX = "SUPERVISOR_OPERATOR_"

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]


def version() -> str:
    """Version of the installed package."""
    try:
        return metadata.version(PROGRAM)
    except metadata.PackageNotFoundError:
        return "unknown"


def _new_identity() -> str:
    return f"{socket.gethostname()}_{secrets.token_hex(4)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    kubeconfig: Path | None = None
    namespaces: tuple[str, ...] = ()
    crd_wait_seconds: float = 660.0
    """Longer than a kubelet remembers crashes (10 min): its back-off never grows to minutes."""
    relay_image: str = "localhost/supervisor-operator:dev"

    leader_elect: bool = True
    lease_namespace: str | None = None
    lease_name: str = PROGRAM
    identity: str = field(default_factory=_new_identity)
    lease_seconds: int = 15
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0

    workers: int = 16
    resync_seconds: float = 30.0
    sweep_seconds: float = 600.0
    node_grace_seconds: float = 60.0
    heartbeat_writes_per_second: float = 10.0

    http_host: str = "127.0.0.1"
    http_port: int = 8080

    log_format: LogFormat = "text"
    log_level: LogLevel = "info"

    @staticmethod
    def from_args(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
        """Read flags, then variables for what no flag says; exits with code 2 on a wrong one."""
        parser = _parser()
        given = _given(vars(parser.parse_args(argv)), environ)
        settings = Settings(**{name: word.read(parser) for name, word in given.items()})
        _check_lease(settings, given, parser)
        return settings


@dataclass(frozen=True, slots=True)
class _Rule:
    """How a value is read; `read` raises ValueError for what is not `allowed`."""

    read: Callable[[str], object]
    allowed: str
    metavar: str


def _number(kind: type[int | float], low: float, high: float, unit: str = "") -> _Rule:
    def read(word: str) -> float:
        number = kind(word)
        if not low <= number <= high:
            raise ValueError(word)
        return number

    words = "a whole number" if kind is int else "a number"
    of_unit = f" of {unit.lower()}" if unit else ""
    return _Rule(read, f"{words}{of_unit} from {low:g} to {high:g}", unit or "N")


def _seconds(low: float) -> _Rule:
    return _number(float, low, 86400, "SECONDS")


def _choice(*words: str) -> _Rule:
    def read(word: str) -> str:
        return words[words.index(word.lower())]

    return _Rule(read, " or ".join(words), "|".join(words))


def _matching(pattern: str, allowed: str, metavar: str) -> _Rule:
    def read(word: str) -> str:
        if not re.fullmatch(pattern, word):
            raise ValueError(word)
        return word

    return _Rule(read, allowed, metavar)


def _existing_file(word: str) -> Path:
    path = Path(word).expanduser()
    if not path.is_file():
        raise ValueError(word)
    return path


def _boolean(word: str) -> bool:
    return ("false", "true").index(word.lower()) == 1


def _namespaces(words: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(_NAMESPACE.read(word)) for word in words.split(",")))


_NAMESPACE = _matching(
    r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "the name of a namespace", "NAMESPACE"
)
_NAMESPACES = _Rule(_namespaces, "names of namespaces, separated by commas", "NAMESPACE")
_NAME = _matching(
    r"(?=.{1,253}$)[a-z0-9]([a-z0-9.-]*[a-z0-9])?", "an object's name: a-z, 0-9, - and .", "NAME"
)
_FILE = _Rule(_existing_file, "the path of a file that exists", "PATH")
_BOOLEAN = _Rule(_boolean, "true or false", "true|false")
_IMAGE = _matching(r"\S+", "an image reference, without blanks", "IMAGE")
_IDENTITY = _matching(r"\S+", "a word that no other replica uses, without blanks", "WORD")
_HOST = _matching(r"\S+", "an address of this machine, without blanks", "HOST")


@dataclass(frozen=True, slots=True)
class _Flag:
    """One row: the flag, its rule and its help; `field` where it is not the flag's own name."""

    flag: str
    rule: _Rule
    text: str
    field: str = ""

    @property
    def name(self) -> str:
        return self.field or self.flag[2:].replace("-", "_")

    @property
    def variable(self) -> str:
        return VARIABLE_PREFIX + self.flag[2:].replace("-", "_").upper()


_FLAGS: dict[str, tuple[_Flag, ...]] = {
    "cluster": (
        _Flag("--kubeconfig", _FILE, "how to reach the cluster (default: as a pod of it)"),
        _Flag(
            "--namespace",
            _NAMESPACES,
            "look after this namespace only; may be repeated (default: all)",
            field="namespaces",
        ),
        _Flag("--crd-wait-seconds", _seconds(0), "how long server, CRDs or rights may be missing"),
        _Flag("--relay-image", _IMAGE, "image of the relay that is put beside agents"),
    ),
    "leader election": (
        _Flag("--leader-elect", _BOOLEAN, "work only as the leader; false for a single process"),
        _Flag("--lease-namespace", _NAMESPACE, "where the lease is (default: the pod's own)"),
        _Flag("--lease-name", _NAME, "name of the lease"),
        _Flag("--identity", _IDENTITY, "our name in the lease (default: host and random suffix)"),
        _Flag(
            "--lease-seconds", _number(int, 1, 3600, "SECONDS"), "how long a lease holds unrenewed"
        ),
        _Flag(
            "--renew-seconds",
            _seconds(0.1),
            "how long the leader may fail to renew before it steps down; less than the lease",
        ),
        _Flag("--retry-seconds", _seconds(0.1), "time between two tries; less than that"),
    ),
    "work": (
        _Flag("--workers", _number(int, 1, 1000), "how many objects are looked at at once"),
        _Flag("--resync-seconds", _seconds(0.1), "time between two looks at everything"),
        _Flag("--sweep-seconds", _seconds(0.1), "time between two searches for missed deletions"),
        _Flag(
            "--node-grace-seconds",
            _seconds(0),
            "silence before an agent is restarted whose relay is silent too",
        ),
        _Flag(
            "--heartbeat-writes-per-second",
            _number(float, 0, 1000),
            "budget for refreshing lastHeartbeatTime; 0 = only when the state changes",
        ),
    ),
    "probes and metrics": (
        _Flag("--http-host", _HOST, "address to listen on"),
        _Flag("--http-port", _number(int, 0, 65535), "port to listen on; 0 = any, see the log"),
    ),
    "log": (
        _Flag("--log-format", _choice(*get_args(LogFormat)), "how a line is written"),
        _Flag("--log-level", _choice(*get_args(LogLevel)), "the least severe lines to write"),
    ),
}


class _Parser(argparse.ArgumentParser):
    @override
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def _parser() -> _Parser:
    parser = _Parser(
        prog=PROGRAM,
        usage="%(prog)s [flags]",
        description="Supervision trees for Kubernetes: keeps agents alive, not just running.",
        epilog=f"Each flag can be given as a variable too, --http-port as {VARIABLE_PREFIX}"
        "HTTP_PORT; the flag wins. Repeated values are separated by commas there.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {version()}")
    defaults = {one.name: one.default for one in fields(Settings)}
    for title, flags in _FLAGS.items():
        group = parser.add_argument_group(title)
        for flag in flags:
            group.add_argument(
                flag.flag,
                dest=flag.name,
                metavar=flag.rule.metavar,
                action="append" if flag.rule is _NAMESPACES else "store",
                help=_help(flag, defaults[flag.name]),
            )
    return parser


def _help(flag: _Flag, default: object) -> str:
    if "(default" in flag.text:
        return flag.text
    shown = f"{default:g}" if isinstance(default, float) else str(default)
    return f"{flag.text} (default: {shown.lower()})"


@dataclass(frozen=True, slots=True)
class _Given:
    """A value as it was given, and where."""

    source: str
    word: str
    rule: _Rule

    def read(self, parser: _Parser) -> Any:
        try:
            return self.rule.read(self.word)
        except ValueError:
            allowed = self.rule.allowed
            parser.error(f"{self.source}: {self.word!r} is not allowed; allowed is {allowed}")


def _given(words: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, _Given]:
    """What was given by flag or variable; an empty variable counts as not set.

    Variables that are no setting are ignored: the kubelet makes SUPERVISOR_OPERATOR_SERVICE_HOST
    and its like for a Service of our name.
    """
    given = {}
    for flag in (flag for flags in _FLAGS.values() for flag in flags):
        word = words[flag.name]
        if word is not None:
            joined = word if isinstance(word, str) else ",".join(word)
            given[flag.name] = _Given(flag.flag, joined, flag.rule)
        elif environ.get(flag.variable):
            given[flag.name] = _Given(flag.variable, environ[flag.variable], flag.rule)
    return given


def _check_lease(settings: Settings, given: Mapping[str, _Given], parser: _Parser) -> None:
    """Each time must be shorter than the one before it, or two replicas may lead at once."""
    for shorter, longer in (("renew_seconds", "lease_seconds"), ("retry_seconds", "renew_seconds")):
        value, limit = getattr(settings, shorter), getattr(settings, longer)
        if value >= limit:
            source = next(given[name].source for name in (shorter, longer) if name in given)
            words = f"{shorter} {value:g} is not allowed with {longer} {limit:g}"
            parser.error(f"{source}: {words}; allowed is {shorter} less than {longer}")
