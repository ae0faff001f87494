"""How a story ends: every object of its cast, and a pattern of that learnt from two tellings.

What differs between two undisturbed tellings (times, uids, addresses) is nobody's decision and may
differ again; all else must be the same whatever happened on the way.
"""

from __future__ import annotations

import re
from typing import Any

from tests.support.stage import CUSTOM, Stage

ANY = "(any)"
ALWAYS_ANY = {"namespace", "nodeName", "hostIP", "hostIPs", "podIP", "podIPs"}
"""Left to the scheduler, the stage or the node: two tellings may well agree on them by chance."""
NOT_OURS = {"heartbeats": ("status",)}
"""What others write all the time."""
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+]+Z?")
KINDS = (
    f"{CUSTOM} supervisorteams",
    f"{CUSTOM} supervisors",
    f"{CUSTOM} heartbeats",
    "/api/v1 pods",
)
Json = dict[str, Any]


def is_cast(name: str, story: str) -> bool:
    return name == story or name.startswith(f"{story}-")


def cast(stage: Stage, story: str, path: str) -> list[Json]:
    """The objects of one kind that are part of the story."""
    items = stage.ask("GET", path)["items"]
    return [item for item in items if is_cast(item["metadata"]["name"], story)]


def end_of(stage: Stage, story: str) -> Json:
    """All objects of the story as they are, with its name and every time left open."""
    return {name: item for path in KINDS for name, item in _of_kind(stage, story, path).items()}


def lacks(stage: Stage, story: str, pattern: Json, path: str) -> list[str]:
    """What of one kind is other than the pattern says."""
    plural = path.rpartition(" ")[2]
    wanted = {name: item for name, item in pattern.items() if name.startswith(f"{plural}/")}
    return differences(wanted, _of_kind(stage, story, path))


def _of_kind(stage: Stage, story: str, path: str) -> Json:
    plural = path.rpartition(" ")[2]
    found: Json = {}
    for item in cast(stage, story, path):
        item["metadata"].pop("managedFields", None)
        for field in NOT_OURS.get(plural, ()):
            item.pop(field, None)
        found[f"{plural}/{item['metadata']['name']}"] = item
    plain: Json = _plain(found, story)
    return plain


def _plain(value: Any, story: str) -> Any:
    if isinstance(value, dict):
        return {
            key.replace(story, "NAME"): ANY if key in ALWAYS_ANY else _plain(one, story)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [_plain(one, story) for one in value]
    if not isinstance(value, str):
        return value
    return TIME.sub("TIME", re.sub(rf"\b{story}\b", "NAME", value))


def common(first: Any, second: Any) -> Any:
    """The pattern of two tellings: ANY where a single value differs; they must not in shape."""
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        return {key: common(one, second[key]) for key, one in first.items()}
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        return [common(one, other) for one, other in zip(first, second, strict=True)]
    is_shape = isinstance(first, dict | list) or isinstance(second, dict | list)
    assert not is_shape, f"two undisturbed tellings differ: {first}\n{second}"
    return first if first == second else ANY


def differences(pattern: Any, found: Any, where: str = "") -> list[str]:
    """In words; empty where `found` is as the pattern says."""
    if pattern == ANY:
        return []
    if isinstance(pattern, dict) and isinstance(found, dict):
        return [
            text
            for key in sorted(pattern.keys() | found.keys())
            for text in differences(pattern.get(key), found.get(key), f"{where}.{key}")
        ]
    if isinstance(pattern, list) and isinstance(found, list) and len(pattern) == len(found):
        return [
            text
            for number, (one, other) in enumerate(zip(pattern, found, strict=True))
            for text in differences(one, other, f"{where}[{number}]")
        ]
    return [] if pattern == found else [f"{where.lstrip('.')}: {found!r}, not {pattern!r}"]
