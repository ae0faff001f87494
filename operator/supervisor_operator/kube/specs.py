"""Specs as models, read once for all objects that share one, as those of a fleet mostly do."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from supervisor_operator.api.v1alpha1.supervisor import SupervisorSpec
from supervisor_operator.core.template import template_hash
from supervisor_operator.kube.cluster import Object


@dataclass(frozen=True, slots=True)
class ReadSpec:
    spec: SupervisorSpec
    template_hash: str
    invalid: str = ""
    """Why the models refuse it; `spec` then holds defaults only."""


class Specs:
    """Remembers by identity: what `Customs` keeps is never changed, and mostly one where equal."""

    def __init__(self, most: int = 256) -> None:
        self._most = most
        self._known: dict[int, tuple[Object, ReadSpec]] = {}

    def read(self, spec: Object) -> ReadSpec:
        known = self._known.get(id(spec))
        if known is None:
            if len(self._known) >= self._most:
                self._known.clear()
            # With the spec itself: as long as it lives, nothing else has its id.
            known = self._known[id(spec)] = (spec, _read(spec))
        return known[1]


def _read(spec: Object) -> ReadSpec:
    try:
        found, invalid = SupervisorSpec.model_validate(spec), ""
    except ValidationError as error:
        found, invalid = SupervisorSpec(), tell_refusal(error)
    return ReadSpec(found, template_hash(found), invalid)


def tell_refusal(error: ValidationError) -> str:
    """The first thing that is wrong with a stored spec, and where."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in ("spec", *first["loc"]))
    return f"{where}: {first['msg']}"
