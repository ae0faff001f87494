"""`python -m tests.bench`: play the story, print the table, and keep it where it is complete."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench import page
from tests.bench.fleet import INTERVAL_SECONDS
from tests.bench.rows import table
from tests.bench.say import BenchError, say
from tests.bench.story import EVERYTHING, Order, Run, play, play_large
from tests.cluster.errors import ClusterError
from tests.cluster.places import CHECKOUT

AGENTS = 1000
WINDOW_SECONDS = 120.0
LIMIT_SECONDS = 1800.0
LARGE_SECONDS = 2700.0
PROBLEMS = (BenchError, ClusterError, TimeoutError)
LARGE_BEATS_PER_SECOND = 10_000 / 120
"""About what the usual fleet sends in all, so that costs per beat can be compared."""


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    order = Order(options.agents, options.window, options.only)
    load = page.load_average()
    say(f"{order.agents} agents, {options.runs} run(s), load average {load}")
    try:
        runs = asyncio.run(_play_all(order, options.runs))
    except PROBLEMS as error:
        return _complain(error)
    try:
        large = asyncio.run(_play_large(options)) if options.large else None
    except PROBLEMS as error:  # half an hour of runs is behind us: they are shown all the same
        large, failed = None, _complain(error)
    else:
        failed = 0
    print(table(page.readings_of(runs, large), busy=page.is_busy(load)))
    is_whole = (order.agents, order.wanted) == (AGENTS, EVERYTHING)
    folder = options.out or (CHECKOUT / "docs" if is_whole else None)
    if folder is None or not runs:
        say(f"nothing was written: that takes all figures of {AGENTS} agents, or --out")
        return failed
    written = page.write(folder, runs, large, _command(options), load)
    say(f"written: {written}")
    return failed


def _complain(error: Exception) -> int:
    print(f"bench: {error or 'not done in time'}", file=sys.stderr)
    return 1


async def _play_all(order: Order, count: int) -> list[Run]:
    found: list[Run] = []
    if order.wanted == {"S8"}:
        return found
    for number in range(1, count + 1):
        say(f"run {number} of {count}")
        async with asyncio.timeout(LIMIT_SECONDS):
            found.append(await play(order))
    return found


async def _play_large(options: argparse.Namespace) -> Run:
    say(f"the large fleet: {options.large} agents")
    async with asyncio.timeout(LARGE_SECONDS):
        return await play_large(
            Order(options.large, options.window, options.only, interval=_interval(options.large))
        )


def _interval(large: int) -> int:
    return max(INTERVAL_SECONDS, round(large / LARGE_BEATS_PER_SECOND))


def _command(options: argparse.Namespace) -> str:
    only = "" if options.only == EVERYTHING else f" ONLY={','.join(sorted(options.only))}"
    large = f" LARGE={options.large}" if options.large else ""
    window = f" WINDOW={options.window:g}" if options.window != WINDOW_SECONDS else ""
    return f"make bench AGENTS={options.agents} RUNS={options.runs}{large}{window}{only}"


def _ids(text: str) -> frozenset[str]:
    asked = frozenset(word.strip().upper() for word in text.split(",") if word.strip())
    if unknown := asked - EVERYTHING - {"S8"}:
        known = ", ".join(sorted(EVERYTHING | {"S8"}))
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: known are {known}")
    return asked or EVERYTHING


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1 is needed")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", type=_ids, default=EVERYTHING, help="figures, as S2,S4")
    parser.add_argument("--agents", type=_count, default=AGENTS, help="size of each fleet")
    parser.add_argument("--runs", type=_count, default=1, help="how often; figures are medians")
    parser.add_argument(
        "--large", type=int, default=0, help="agents of one run more, to see how costs grow (S8)"
    )
    parser.add_argument(
        "--window", type=float, default=WINDOW_SECONDS, help="seconds of steady beating"
    )
    parser.add_argument("--out", type=Path, help="folder for benchmarks.md and its samples")
    return parser


if __name__ == "__main__":
    sys.exit(main())
