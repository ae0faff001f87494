"""Specs that the schema admits and that are nonsense otherwise, the same for the same seed.

Every field may be there or not. Free-form fields hold anything, strings anything of their length,
numbers anything within their bounds.
"""

from __future__ import annotations

import random
from typing import Any

from supervisor_operator.crdgen.schema import Schema

Json = dict[str, Any]
LETTERS = "aZ09 -_./:=%${}\"'\\\n\t\u00e9\u4e16\U0001f916\u200b\u202e"
NAMES = "abcdefghijklmnopqrstuvwxyz0123456789"
LONGEST_TEXT = 40
LONGEST_LIST = 3
DEEPEST = 3
SHORT_FORM = ("image", "command", "args", "env", "envFrom", "resources", "workingDir")
PATIENT = {"startupSeconds": 3600, "replicas": 2}
"""These agents never beat, so they would rightly be restarted; and a team is small."""


OFTEN = {"agent": 0.9, "operatingMode": 0.1, "members": 0.9}
"""Others would leave little to do."""


class Nonsense:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - the same nonsense again
        self._share = 0.5

    def spec(self, schema: Schema) -> Any:
        """A value of the schema of a spec; some are full of fields, some nearly empty."""
        self._share = self._random.choice((0.1, 0.3, 0.6))
        return self._value(schema)

    def _value(self, schema: Schema, key: str = "") -> Any:
        if key in PATIENT:
            return PATIENT[key]
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        if schema.get("x-kubernetes-int-or-string"):
            return self._random.choice([0, 3, "0%", "100%", "7%"])
        return self._by_type(schema, key)

    def _by_type(self, schema: Schema, key: str) -> Any:
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            return self._anything({})
        if schema["type"] == "object":
            return self._object(schema, key)
        if schema["type"] == "array":
            return self._array(schema)
        return self._number(schema) if schema["type"] == "integer" else self._text(schema)

    def _number(self, schema: Schema) -> int:
        bounds = schema["minimum"], schema["maximum"]
        return int(self._random.choice([*bounds, self._random.randint(*bounds)]))

    def _object(self, schema: Schema, key: str) -> Json:
        if "additionalProperties" in schema:
            inner = schema["additionalProperties"]
            return {self._name(): self._value(inner) for _ in range(self._random.randint(0, 3))}
        needed = set(schema.get("required", ()))
        found = {
            name: self._value(inner, name)
            for name, inner in schema["properties"].items()
            if name in needed or self._random.random() < OFTEN.get(name, self._share)
        }
        return _consistent(found, key, self._random)

    def _array(self, schema: Schema) -> list[Any]:
        count = self._random.randint(schema.get("minItems", 0), LONGEST_LIST)
        found = [self._value(schema["items"]) for _ in range(count)]
        if schema.get("x-kubernetes-list-type") == "set":
            return sorted(set(found))
        for key in schema.get("x-kubernetes-list-map-keys", ()):
            found = list({item[key]: item for item in found}.values())
        return found

    def _text(self, schema: Schema) -> str:
        pattern, longest = (
            schema.get("pattern", ""),
            min(schema.get("maxLength", LONGEST_TEXT), LONGEST_TEXT),
        )
        if pattern.startswith("^/"):
            return "/" + self._name() + "/" + self._name()
        if pattern:
            return self._name()
        least = schema.get("minLength", 0)
        letters = self._random.choices(LETTERS, k=self._random.randint(least, longest))
        return "".join(letters)

    def _name(self) -> str:
        return "".join(self._random.choices(NAMES, k=self._random.randint(1, 8)))

    def _anything(self, kind: Any, depth: int = 0) -> Any:
        """Any JSON; at the top an object."""
        if isinstance(kind, dict) and depth < DEEPEST:
            return {
                self._random.choice(("containers", "name", "requests", "x", "é", "")): (
                    self._anything(self._kind(), depth + 1)
                )
                for _ in range(self._random.randint(0, 3))
            }
        if isinstance(kind, list) and depth < DEEPEST:
            return [self._anything(self._kind(), depth + 1) for _ in range(2)]
        return self._random.choice(
            [0, -1, 2**53, 1.5, True, "", self._text({"maxLength": LONGEST_TEXT})]
        )

    def _kind(self) -> Any:
        return self._random.choice([{}, [], 0, 0])


def _consistent(found: Json, key: str, chance: random.Random) -> Json:
    """What rules between fields ask for: else the server would refuse nearly all."""
    if key == "agent":
        if "template" in found and chance.random() < 0.5:
            for name in SHORT_FORM:
                found.pop(name, None)
        else:
            found = {"image": "localhost/agent:1"} | found
            found.pop("template", None)
    if key == "restart":
        found.pop("exitCodes", None) if chance.random() < 0.5 else None
        found["maxDelaySeconds"] = max(
            found.get("maxDelaySeconds", 300), found.get("delaySeconds", 5)
        )
    if "ref" in found or "role" in found:
        found.pop("replicas" if "ref" in found else "ref", None)
        found.pop("template" if "ref" in found else "ref", None)
        if "ref" not in found:
            found.setdefault("template", {})
    if key == "template":
        for name in ("parentRef", "restartRequest"):
            found.pop(name, None)
    return found
