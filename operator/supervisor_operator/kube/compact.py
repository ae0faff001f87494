"""Keeps small what is kept: JSON brings every key and every word of every object anew.

Words and keys are held once for all objects that use them, and so are blocks of specs that are
equal, as those of a fleet mostly are. What comes out must not be changed.
"""

from __future__ import annotations

import json
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
    """Equal blocks are one; at most so many different ones are remembered."""

    def __init__(self, most: int = 1024) -> None:
        self._most = most
        self._known: dict[str, Any] = {}

    def share(self, spec: dict[str, Any]) -> dict[str, Any]:
        """The spec, with its blocks shared."""
        return {intern(key): self._one(block) for key, block in spec.items()}

    def _one(self, block: Any) -> Any:
        if not isinstance(block, dict):
            return compact(block)
        words = json.dumps(block, sort_keys=True)
        found = self._known.get(words)
        if found is None:
            if len(self._known) >= self._most:
                self._known.clear()
            found = self._known[words] = compact(block)
        return found
