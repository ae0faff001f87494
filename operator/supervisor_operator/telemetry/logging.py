"""The log: one line per event on standard error, as text for people or JSON for collectors.

All loggers, those of kopf included, end in one handler. A line may name the object it is about,
by `about(...)` or `extra={"object": "Supervisor shop/clerk"}`.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

from typing_extensions import override

from supervisor_operator.settings import Settings

if TYPE_CHECKING:
    Adapter = logging.LoggerAdapter[logging.Logger]
else:
    Adapter = logging.LoggerAdapter

# kopf tells of every event and handler at INFO; its warnings and errors are worth reading.
_QUIET = ("kopf", "aiohttp.access", "asyncio", "kubernetes")


def configure(settings: Settings, stream: TextIO | None = None) -> None:
    """Send every line of the process through one handler."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else TextFormatter())
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    logging.basicConfig(handlers=[handler], level=level, force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    logging.captureWarnings(True)


def about(logger: logging.Logger, kind: str, namespace: str, name: str) -> Adapter:
    """The logger, with every line naming that object."""
    return logging.LoggerAdapter(logger, {"object": f"{kind} {namespace}/{name}"})


class JsonFormatter(logging.Formatter):
    @override
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "object": _object(record),
            "error": _error(record),
            "trace": _trace(record),
        }
        return json.dumps({key: value for key, value in line.items() if value})


class TextFormatter(logging.Formatter):
    @override
    def format(self, record: logging.LogRecord) -> str:
        words = [_time(record), f"{record.levelname:<7}", record.name]
        if about := _object(record):
            words.append(f"[{about}]")
        text = record.getMessage()
        if error := _error(record):
            text = f"{text}: {error}"
        # Messages quote what agents and users wrote; it must not look like a line of ours.
        line = " ".join([*words, text.replace("\r", "\\r").replace("\n", "\\n")])
        return "\n    ".join([line, *_trace(record).splitlines()])


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _object(record: logging.LogRecord) -> str:
    """What the line is about: our own `object`, or the reference kopf adds."""
    if about := getattr(record, "object", None):
        return str(about)
    reference = getattr(record, "k8s_ref", None)
    if not isinstance(reference, Mapping):
        return ""
    place = [reference[key] for key in ("namespace", "name") if reference.get(key)]
    return f"{reference.get('kind')} {'/'.join(place)}"


def _error(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    return "".join(traceback.format_exception_only(error)).strip() if error else ""


def _trace(record: logging.LogRecord) -> str:
    return "".join(traceback.format_exception(record.exc_info[1])) if record.exc_info else ""
