"""The console blocks of a page: what a reader types, and what he is told to see."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
TIME = re.compile(r"\b\d+(\.\d+)?( s\b|s\b|m(\d+s)?\b)")
SAID_OTHERWISE = {
    r"made (now|before)": "made #",
    r"built now|from the build cache": "at hand",
    r"process \d+": "process #",
}
LEFT_OUT = "…"


@dataclass(frozen=True, slots=True)
class Step:
    command: str
    shown: tuple[str, ...]

    def missing_in(self, output: str) -> list[str]:
        """Lines of the page that the output does not have, in its order and but for times."""
        said = iter([plain(line) for line in output.splitlines()])
        wanted = [plain(line) for line in self.shown if line.strip() not in ("", LEFT_OUT)]
        return [line for line in wanted if not any(is_shown(line, one) for one in said)]


def steps(page: Path) -> list[Step]:
    """Every command of a page, in order, without the comment behind it."""
    return [
        Step(re.sub(r"\s{2,}#.*", "", command), tuple(shown))
        for block in BLOCK.findall(page.read_text())
        for command, *shown in (part.splitlines() for part in block.split("$ ")[1:])
    ]


def is_shown(line: str, said: str) -> bool:
    """Whether this is what was said, up to where the page leaves the rest out."""
    start, is_cut, rest = line.partition(LEFT_OUT)
    return said.startswith(start) if is_cut and not rest else said == line


def plain(line: str) -> str:
    """A line without what differs from run to run: times, numbers of processes, white space."""
    for pattern, words in SAID_OTHERWISE.items():
        line = re.sub(pattern, words, line)
    return " ".join(TIME.sub("#", line).split())
