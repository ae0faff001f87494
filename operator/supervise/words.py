"""The words of a command line, and the values they stand for.

Ours, because argparse with what it imports takes a third of the time in which supervise may start.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

HELP = ("-h", "--help")


class WrongUse(Exception):  # noqa: N818 - says what it found
    """The words cannot be understood; carries why."""


class Option(NamedTuple):
    name: str
    default: Any
    convert: Callable[[str], Any] | None  # None: the option takes no value
    value: str = ""
    help: str = ""
    many: bool = False

    @property
    def word(self) -> str:
        return f"--{self.name}"


def parse(options: Sequence[Option], words: Sequence[str]) -> dict[str, Any]:
    """Return a value for each option, by its name."""
    known = {option.word: option for option in options}
    values = {option.name: option.default for option in options}
    left = list(words)
    while left:
        word, equals, value = left.pop(0).partition("=")
        option = known.get(word)
        if option is None:
            raise WrongUse(f"unknown option {word}{equals}{value}")
        given = [value] if equals else _following(option, left)
        converted = [_convert(option, each) for each in given]
        if option.many:
            values[option.name] = [*values[option.name], *converted]
        else:
            values[option.name] = converted[0]
    return values


def _following(option: Option, left: list[str]) -> list[str]:
    """Take the values of the option off the words that are left."""
    if option.convert is None:
        return [""]
    count = next((i for i, word in enumerate(left) if word.startswith("--")), len(left))
    if not count:
        raise WrongUse(f"{option.word} needs a value: {option.word} {option.value}")
    taken = left[: count if option.many else 1]
    del left[: len(taken)]
    return taken


def _convert(option: Option, word: str) -> Any:
    if option.convert is None:
        if word:
            raise WrongUse(f"{option.word} takes no value")
        return True
    try:
        return option.convert(word)
    except ValueError as error:
        raise WrongUse(f"{option.word} {error}") from error


def explain(usage: str, options: Sequence[Option]) -> str:
    lines = [f"usage: {usage}", ""]
    for option in options:
        shown = f"{option.word} {option.value}".strip() + ("..." if option.many else "")
        default = f" (default: {option.default:g})" if isinstance(option.default, float) else ""
        lines.append(f"  {shown:<26} {option.help}{default}".rstrip())
    return "\n".join(lines)


def text(word: str) -> str:
    return word


def seconds(word: str) -> float:
    if (number := _number(word)) is None or not 0 <= number < math.inf:
        raise ValueError(f"must be zero or more seconds, not {word}")
    return number


def interval(word: str) -> float:
    if number := seconds(word):
        return number
    raise ValueError("must be more than zero seconds")


def count(word: str) -> int:
    number = _number(word)
    if number is None or number < 0 or not number.is_integer():
        raise ValueError(f"must be zero or more, not {word}")
    return int(number)


def metric(word: str) -> tuple[str, int | float | str]:
    key, equals, value = word.partition("=")
    if not key or not equals:
        raise ValueError(f"must be KEY=VALUE, not {word}")
    number = _number(value)
    if number is None or not math.isfinite(number):
        return key, value
    return key, int(value) if value.strip("+-").isdecimal() else number


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
