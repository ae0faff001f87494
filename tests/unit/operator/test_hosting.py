"""What kopf may say in our log."""

from __future__ import annotations

import io
import logging

import kopf
import pytest
from kopf._cogs.clients.errors import APIForbiddenError

from supervisor_operator.handlers.hosting import TELLERS, quieten
from supervisor_operator.telemetry.logging import TextFormatter


@pytest.mark.parametrize("name", TELLERS)
@pytest.mark.parametrize(
    ("error", "is_traced"),
    [(APIForbiddenError("no", status=403, headers={}), False), (KeyError("x"), True)],
)
def test_an_answer_of_the_api_server_needs_no_frames(
    name: str,
    error: Exception,
    is_traced: bool,  # noqa: FBT001
) -> None:
    quieten(kopf.OperatorSettings())
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter())
    logger = logging.getLogger(name)
    logger.addHandler(handler)
    try:
        raise error
    except (APIForbiddenError, KeyError):
        logger.exception("the watcher has failed: %s", error)
    finally:
        logger.removeHandler(handler)
    assert "the watcher has failed" in stream.getvalue()
    assert ("Traceback" in stream.getvalue()) == is_traced
