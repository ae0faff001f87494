"""Label selectors over the index, as kubectl writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from supervisor_api.problems import field_error

WORD = r"[A-Za-z0-9](?:[-\w./]*[A-Za-z0-9])?"
COMMA = re.compile(r",(?![^()]*\))")
"""Those in brackets do not part terms."""
SET = re.compile(rf"({WORD})\s+(in|notin)\s+\(([^()]*)\)")
EQUAL = re.compile(rf"({WORD})\s*(==|=|!=)\s*({WORD}|)")
EXISTS = re.compile(rf"(!?)\s*({WORD})")


@dataclass(frozen=True, slots=True)
class Term:
    key: str
    values: frozenset[str] | None = None
    """None asks only whether there is one."""
    negated: bool = False

    def takes(self, labels: Mapping[str, str]) -> bool:
        label = labels.get(self.key)
        found = label is not None if self.values is None else label in self.values
        return found is not self.negated


@dataclass(frozen=True, slots=True)
class Selector:
    terms: tuple[Term, ...]

    @classmethod
    def parse(cls, text: str) -> Selector:
        words = [word.strip() for word in COMMA.split(text)] if text.strip() else []
        return cls(tuple(_term(word) for word in words))

    def takes(self, labels: Mapping[str, str]) -> bool:
        return all(term.takes(labels) for term in self.terms)


def _term(word: str) -> Term:
    if found := SET.fullmatch(word):
        values = frozenset(value.strip() for value in found[3].split(","))
        return Term(found[1], values, negated=found[2] == "notin")
    if found := EQUAL.fullmatch(word):
        return Term(found[1], frozenset({found[3]}), negated=found[2] == "!=")
    if found := EXISTS.fullmatch(word):
        return Term(found[2], negated=bool(found[1]))
    raise field_error(
        "query.labelSelector",
        word,
        "allowed are key=value, key!=value, key in (a,b), key notin (a,b), key and !key",
    )
