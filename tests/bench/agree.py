"""`python -m tests.bench.agree FIRST SECOND`: do two tables say the same, within their spreads?

Each is the `samples.json` that a bench has written. Ends with 1 where a figure with a goal does not
agree: its spreads, lowest to highest run, have nothing in common.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.rows import ROWS, Row, show

Readings = Sequence[Mapping[str, float]]
HEAD = ["id", "figure", "first", "second", "spread of the first", "of the second", "agree"]


def main(arguments: Sequence[str]) -> int:
    first, second = (usual(json.loads(Path(name).read_text())) for name in arguments)
    rows = [cells for row in ROWS if row.id and (cells := compare(row, first, second))]
    for cells in (HEAD, ["---"] * len(HEAD), *rows):
        print(f"| {' | '.join(cells)} |")
    return int(any(cells[-1] == "no" for cells in rows))


def usual(runs: Sequence[Mapping[str, Any]]) -> Readings:
    """The readings of the runs with the usual fleet, without those of a large one."""
    return [run["readings"] for run in runs if run["agents"] == runs[0]["agents"]]


def compare(row: Row, first: Readings, second: Readings) -> list[str] | None:
    one, two = ([run[row.key] for run in runs if row.key in run] for runs in (first, second))
    if not one or not two:
        return None
    overlap = max(min(one), min(two)) <= min(max(one), max(two))
    return [
        row.id,
        row.what,
        *(f"{show(median(values))}{row.suffix}" for values in (one, two)),
        *(f"{show(min(values))} to {show(max(values))}" for values in (one, two)),
        "yes" if overlap else "no",
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
