"""The heartbeat file: how a beat is written and how it is read.

Written whole and renamed into place, so that a reader never sees half a beat. Read with suspicion:
other writers do it less carefully, and no content of the file may harm its reader.
"""

import math
import os
import stat
from collections.abc import Mapping
from typing import Any, NamedTuple

from supervise import clock
from supervise.contract import DEFAULT_FILE, FILE_VARIABLE, MAX_METRICS_BYTES

MAX_FILE_BYTES = 64 * 1024

Metric = int | float | str
File = str | os.PathLike[str]


class Beat(NamedTuple):
    """One beat. Two sightings are the same beat exactly when `mark` is equal."""

    mark: tuple[float, ...]
    unix_ts: float
    grain: float = 0.05  # seconds by which the timestamp may lag: file systems round down
    busy_seconds: float = 0.0


class Sighting(NamedTuple):
    """What one look at the file showed; blind means that even its age could not be seen."""

    beat: Beat | None = None
    problem: str = ""
    blind: bool = False
    metrics: Any = None  # as found, of any type and size


def default_file() -> str:
    return os.environ.get(FILE_VARIABLE) or DEFAULT_FILE


def write(
    path: File, metrics: Mapping[str, Metric] | None = None, busy_seconds: float = 0.0
) -> None:
    folder, name = os.path.split(os.fspath(path))
    if name in ("", os.curdir):
        raise ValueError(f"the heartbeat file needs a name, not {path}")
    text = _encode(metrics, busy_seconds)
    os.makedirs(folder or os.curdir, exist_ok=True)
    draft = os.path.join(folder, f".{name}.{_writer()}.tmp")
    try:
        with open(draft, "w", encoding="utf-8") as opened:
            opened.write(text)
        os.replace(draft, path)
    except OSError:
        if os.path.exists(draft):
            os.unlink(draft)
        raise


def _writer() -> str:
    """Return what no other writer of this moment is called."""
    import threading  # noqa: PLC0415 - whoever only reads need not pay

    return f"{os.getpid()}.{threading.get_ident()}"


def _encode(metrics: Mapping[str, Metric] | None, busy_seconds: float) -> str:
    import json  # noqa: PLC0415 - the same

    if not 0 <= busy_seconds < math.inf:
        raise ValueError(f"busy seconds must be zero or more, not {busy_seconds:g}")
    content: dict[str, Any] = {"unix_ts": clock.wall()}
    if metrics:
        check(metrics)
        content["metrics"] = dict(metrics)
    if busy_seconds:
        content["busy_seconds"] = busy_seconds
    return json.dumps(content) + "\n"


def check(metrics: Mapping[str, Any]) -> None:
    """Refuse metrics that no beat can carry."""
    import json  # noqa: PLC0415 - the same

    size = len(json.dumps(dict(metrics), allow_nan=False).encode())
    if size > MAX_METRICS_BYTES:
        raise ValueError(f"metrics take {size} bytes, at most {MAX_METRICS_BYTES} are kept")


def read(path: File) -> Sighting:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return Sighting()
    except OSError as error:
        return Sighting(problem=f"cannot be looked at ({error.strerror})", blind=True)
    if not stat.S_ISREG(found.st_mode):
        return Sighting(problem="is not a regular file", blind=True)
    by_time = Beat((found.st_mtime_ns, found.st_size, found.st_ino), found.st_mtime)
    if found.st_size > MAX_FILE_BYTES:
        return Sighting(by_time, f"is larger than {MAX_FILE_BYTES // 1024} KiB")
    try:
        content = _content(path)
    except OSError as error:
        return Sighting(by_time, f"cannot be read ({error.strerror})")
    return _decode(content, by_time)


def _content(path: File) -> bytes:
    # Non-blocking, because a named pipe may have taken the file's place since it was looked at.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags)
    try:
        return os.read(descriptor, MAX_FILE_BYTES)
    finally:
        os.close(descriptor)


def _decode(content: bytes, by_time: Beat) -> Sighting:
    if not content.lstrip().startswith(b"{"):
        return Sighting(by_time)
    import json  # noqa: PLC0415 - an agent may live without; its supervisor then does too

    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        return Sighting(by_time, "is not whole JSON")
    busy = max(_number(fields.get("busy_seconds")) or 0.0, 0.0)
    beat, problem = by_time._replace(busy_seconds=busy), ""
    if "unix_ts" in fields:
        moment = _number(fields["unix_ts"])
        if moment is None:
            problem = "has a unix_ts that is no number"
        else:
            beat = Beat((moment,), moment, 1.0 if moment.is_integer() else beat.grain, busy)
    return Sighting(beat, problem, metrics=fields.get("metrics"))


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
