"""What is kept says the same as what came, in shared words."""

from __future__ import annotations

import json

from supervisor_operator.kube.compact import WORD, Blocks, compact

TEXT = '{"agent": {"image": "a:1", "env": [{"name": "A", "value": "%s"}]}, "paused": true}'


def parsed(value: str = "1") -> dict[str, object]:
    found: dict[str, object] = json.loads(TEXT % value)
    return found


def test_nothing_is_lost() -> None:
    long = "x" * (WORD + 1)
    assert compact(parsed(long)) == parsed(long)
    assert Blocks().share(parsed(long)) == parsed(long)


def test_equal_specs_are_one_and_else_their_blocks() -> None:
    blocks = Blocks()
    first, second, third = (blocks.share(parsed(value)) for value in ("1", "1", "2"))
    assert first is second
    assert third["agent"] == {"image": "a:1", "env": [{"name": "A", "value": "2"}]}
    paused = blocks.share({**parsed("1"), "paused": False})
    assert paused["agent"] is first["agent"]


def test_not_all_blocks_there_ever_were_are_remembered() -> None:
    blocks = Blocks(most=2)
    first = blocks.share(parsed("0"))
    for number in range(5):
        blocks.share(parsed(str(number)))
    assert blocks.share(parsed("0")) == first
    assert len(blocks._known) <= 2
