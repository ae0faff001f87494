"""Keeps small what is kept: JSON brings every key and every word of every object anew.

Words and keys are held once for all objects that use them, and so are specs that are equal, as
those of a fleet mostly are, or else their blocks. What comes out must not be changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from sys import intern
from typing import Any

WORD = 64
"""Longer texts are hardly ever the same twice."""


def compact(value: Any) -> Any:
    """The same value, made of shared words."""
    kind = type(value)
    if kind is str:
        return intern(value) if len(value) <= WORD else value
    if kind is dict:
        return {intern(key): compact(one) for key, one in value.items()}
    if kind is list:
        return [compact(one) for one in value]
    return value


class Blocks:
    """Equal specs are one, and so are equal blocks; at most so many of both are remembered."""

    def __init__(self, most: int = 1024) -> None:
        self._most = most
        self._known: dict[int, dict[str, Any]] = {}

    def share(self, spec: dict[str, Any]) -> dict[str, Any]:
        return self._one(spec, self._with_shared_blocks)

    def _with_shared_blocks(self, spec: dict[str, Any]) -> dict[str, Any]:
        return {intern(key): self._block(block) for key, block in spec.items()}

    def _block(self, block: Any) -> Any:
        return self._one(block, compact) if isinstance(block, dict) else compact(block)

    def _one(self, value: dict[str, Any], make: Callable[[Any], Any]) -> dict[str, Any]:
        # The words themselves would be as much to keep as what they stand for.
        key = hash(json.dumps(value, sort_keys=True))
        found = self._known.get(key)
        if found is None or found != value:
            found = make(value)
            if len(self._known) >= self._most:
                self._known.clear()
            self._known[key] = found
        return found
