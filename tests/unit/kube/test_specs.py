"""Specs are read once for all who share one, and what cannot be read is told."""

from __future__ import annotations

import pytest

from supervisor_operator.core.template import template_hash
from supervisor_operator.kube.specs import Specs
from tests.support.builders import AGENT

SPEC = {"agent": AGENT}


def test_a_shared_spec_is_read_once() -> None:
    specs, spec = Specs(), dict(SPEC)
    found = specs.read(spec)
    assert specs.read(spec) is found
    assert (found.template_hash, found.invalid) == (template_hash(found.spec), "")


def test_not_all_specs_there_ever_were_are_remembered() -> None:
    specs, spec = Specs(most=2), dict(SPEC)
    first = specs.read(spec)
    for _ in range(3):
        specs.read(dict(SPEC))
    assert specs.read(spec) == first
    assert len(specs._known) <= 2


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ({"agent": 5}, "spec.agent: "),
        ({"restart": {"maxRestarts": "x"}}, "spec.restart.maxRestarts"),
    ],
)
def test_what_the_models_refuse_is_named(spec: dict[str, object], where: str) -> None:
    found = Specs().read(spec)
    assert found.invalid.startswith(where)
    assert found.spec.agent is None
