from __future__ import annotations

import io
import json
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kopf._cogs.configs.configuration import OperatorSettings
from kopf._cogs.structs.bodies import Body
from kopf._core.actions.loggers import ObjectLogger

from supervisor_operator.settings import LogFormat, LogLevel, Settings
from supervisor_operator.telemetry.logging import _QUIET, about, configure

LOG = logging.getLogger("supervisor_operator.reconcile")

Configure = Callable[[LogFormat, LogLevel], io.StringIO]


@pytest.fixture
def configured() -> Iterator[Configure]:
    """Configures the log onto a stream; the log of pytest is put back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    # `configure` closes what it replaces, and these are still needed.
    root.handlers.clear()
    levels = {name: logging.getLogger(name).level for name in _QUIET}

    def start(format_: LogFormat, level: LogLevel) -> io.StringIO:
        stream = io.StringIO()
        configure(Settings(log_format=format_, log_level=level), stream)
        return stream

    yield start
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def fail() -> None:
    raise ValueError("no such pod")


def test_json_line_says_when_how_bad_who_and_about_what(configured: Configure) -> None:
    stream = configured("json", "info")
    about(LOG, "Supervisor", "shop", "clerk").info("created pod %s", "clerk-r1")
    [line] = lines(stream)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line == {
        "level": "info",
        "logger": "supervisor_operator.reconcile",
        "message": "created pod clerk-r1",
        "object": "Supervisor shop/clerk",
    }


def test_json_line_of_an_error_is_still_one_line(configured: Configure) -> None:
    stream = configured("json", "info")
    try:
        fail()
    except ValueError:
        LOG.exception("pass failed\nbadly", extra={"object": "Supervisor shop/clerk"})
    [line] = lines(stream)
    assert line["level"] == "error"
    assert line["message"] == "pass failed\nbadly"
    assert line["object"] == "Supervisor shop/clerk"
    assert line["error"] == "ValueError: no such pod"
    assert "in fail" in line["trace"]


def test_text_line_reads_from_left_to_right(configured: Configure) -> None:
    stream = configured("text", "info")
    about(LOG, "Supervisor", "shop", "clerk").warning("no beat for %d s", 120)
    time, rest = stream.getvalue().split(" ", 1)
    assert time.endswith("Z")
    assert rest == (
        "WARNING supervisor_operator.reconcile [Supervisor shop/clerk] no beat for 120 s\n"
    )


def test_text_line_of_an_error_says_it_first_and_shows_the_trace_indented(
    configured: Configure,
) -> None:
    stream = configured("text", "info")
    try:
        fail()
    except ValueError:
        LOG.exception("pass failed")
    first, *others = stream.getvalue().splitlines()
    assert first.endswith("pass failed: ValueError: no such pod")
    assert others
    assert all(line.startswith("    ") for line in others)


def test_words_of_an_agent_cannot_forge_a_line(configured: Configure) -> None:
    stream = configured("text", "info")
    LOG.info("last words: %s", "bye\n2026-01-01T00:00:00.000Z INFO all is well")
    assert stream.getvalue().count("\n") == 1


def test_level_is_obeyed(configured: Configure) -> None:
    stream = configured("json", "warning")
    LOG.info("unseen")
    LOG.warning("seen")
    assert [line["message"] for line in lines(stream)] == ["seen"]


@pytest.mark.parametrize("level", ["debug", "info"])
def test_kopf_is_heard_only_when_something_is_wrong(configured: Configure, level: LogLevel) -> None:
    stream = configured("json", level)
    body = Body({"kind": "Supervisor", "metadata": {"namespace": "shop", "name": "clerk"}})
    logger = ObjectLogger(body=body, settings=OperatorSettings())
    logger.info("Handler 'x' succeeded.", extra={"k8s_skip": True})
    logger.error("Handler 'x' failed.", extra={"k8s_skip": True})
    logging.getLogger("kopf._core.reactor.running").info("Initial authentication")
    logging.getLogger("aiohttp.access").info("GET /healthz")
    [line] = lines(stream)
    assert line["message"] == "Handler 'x' failed."
    assert line["object"] == "Supervisor shop/clerk"


def test_warnings_of_python_are_lines_too(configured: Configure) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        stream = configured("json", "info")
        warnings.warn("old habit", DeprecationWarning, stacklevel=1)
    [line] = lines(stream)
    assert line["logger"] == "py.warnings"
    assert "old habit" in line["message"]


def test_configuring_twice_does_not_write_twice(configured: Configure) -> None:
    configured("text", "info")
    stream = configured("json", "info")
    LOG.info("once")
    assert len(lines(stream)) == 1
