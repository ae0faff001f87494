"""Writes `docs/benchmarks.md` and, beside it, the samples behind the table."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench import sizing
from tests.bench.fleet import ALLOWED_SECONDS, DELAY_SECONDS, INTERVAL_SECONDS
from tests.bench.plots import draw
from tests.bench.restarts import SPREAD_SECONDS as CRASH_SPREAD
from tests.bench.rows import table, with_growth
from tests.bench.stage import MANAGER_FLAGS, PRODUCTION
from tests.bench.story import SHARE, Run
from tests.bench.verdicts import SPREAD_SECONDS as FREEZE_SPREAD
from tests.cluster.places import CHECKOUT
from tests.cluster.programs import VERSION

QUIET_LOAD = 1.5
BUSY = """\
**Other work ran on this machine meanwhile** (see the load average). It takes time from all that is
measured, and not evenly from one minute to the next. So wall times (S1, S2, S7) are shown but not
judged, neither as met nor as missed. CPU per agent (S10, S11) moved by a third and more between two
such runs: its verdict is about the order of size only.

"""
LIBRARIES = ("kopf", "kubernetes", "aiohttp", "pydantic", "prometheus-client")

PAGE = """\
# Benchmarks

Written by `{command}`; do not edit. Ratios are taken in one run on one machine, against the
built-in Job controller on the same API server. Absolute times do not compare between machines.
The samples behind each figure are in `benchmarks/samples.json`.

| | |
| --- | --- |
| taken | {date}, commit {commit}, load average before {load} |
| machine | {machine} |
| versions | Kubernetes {kubernetes}, Python {python}, {libraries} |
| agents, runs | {agents}, {runs} (figures are medians, the spread is lowest to highest) |

{busy}{table}

{plots}
## What was done

Everything runs on this one machine: API server, etcd (without fsync), controller manager
({manager}), scheduler, KWOK, which plays the kubelet, the operator, and the load.
The operator is a process with its own ServiceAccount token and the flags
`{flags}`; the rest is as it comes.

- **S1, S10, S11**: {agents} objects are created with 32 requests at a time. The clock runs from the
  first request until a watch has shown the last pod as Running. CPU is counted until the
  controller has no more to do, less what the same process uses when idle. First Jobs, then
  Supervisors with source None, then with source File, each in a namespace that is deleted before
  the next begins.
- **Beats**: each agent (source File, interval {interval} s, threshold 3) beats once per interval,
  spread evenly. One client with 8 kept connections sends the status patches that relays would,
  with one token that may `beat-for-others`. A frozen agent's relay goes on: same beat, growing age.
- **S3, S4, S5**: a window of {seconds:.0f} s in which nothing changes, once with
  `--heartbeat-writes-per-second=0` and once with defaults, under an operator started anew. CPU per
  beat is all that the operator used in the window, resync every 30 s included, divided by the beats
  it saw. The bare reader is a process that reads the same watch with the same client, parses each
  line and counts. Memory per agent is resident size at the end of the first window less that before
  the first agent.
- **S2**: one agent in {share} freezes, at random moments within {freeze:.0f} s. The verdict's
  moment is when a watch of Supervisors shows it; the deadline is the moment the last beat was sent
  plus {allowed} s. So the watch's own time is in the figure.
- **S7**: another one in {share} crashes, at random moments within {crash:.0f} s, while the rest
  beats. From the pod seen as Failed to its next run seen, less the delay of {delay} s with its
  jitter.
- **S6**: with the fleet up and beating, an operator is started. The clock runs from the start of
  the process (Python's imports included) until each Supervisor had a pass and none waits. The three
  LISTs (Supervisors, pods, Heartbeats) are asked for whole, one after the other, and parsed. In the
  usual fleet the new operator also writes each status once, because the heartbeat column is off
  before and on its budget after; so the goal is judged with the large fleet, off in both.
{large}"""
LARGE = """\
- **Large fleet, S8**: one run on a cluster of its own, {agents} agents of source File that beat
  every {interval} s. Growth is its figure per pod, beat or agent ÷ that of the usual fleet.
  What follows for fleets of other sizes: [operations/sizing.md](operations/sizing.md).
"""


def write(folder: Path, runs: Sequence[Run], large: Run | None, command: str, load: str) -> Path:
    commit = _commit()  # before anything of it is changed by us
    beside = folder / "benchmarks"
    beside.mkdir(parents=True, exist_ok=True)
    every = [*runs, large] if large else runs
    (beside / "samples.json").write_text("[\n" + ",\n".join(map(_series, every)) + "\n]\n")
    drawn = draw(beside, runs[0].samples, _by_size(every))
    _write_sizing(folder / "operations", runs, large)
    page = folder / "benchmarks.md"
    page.write_text(_page(runs, large, command=command, load=load, commit=commit, drawn=drawn))
    return page


def _write_sizing(folder: Path, runs: Sequence[Run], large: Run | None) -> None:
    keys = set.intersection(*(set(run.readings) for run in runs))
    usual = {key: median(run.readings[key] for run in runs) for key in keys}
    if large is None:
        return
    text = sizing.page(
        sizing.Costs(runs[0].order.agents, usual), sizing.Costs(large.order.agents, large.readings)
    )
    if text:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "sizing.md").write_text(text)


def readings_of(runs: Sequence[Run], large: Run | None) -> list[dict[str, float]]:
    found = [run.readings for run in runs]
    return [*found, with_growth(found, large.readings, large.order.agents)] if large else found


def _series(run: Run) -> str:
    """One line for each series, to the millisecond."""
    all_of = {"agents": run.order.agents, "readings": run.readings} | run.samples
    lines = (f"{json.dumps(key)}: {_line(value)}" for key, value in all_of.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def _line(value: object) -> str:
    return json.dumps(_rounded(value), separators=(",", ":"))


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, Mapping):
        return {str(key): _rounded(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(one) for one in value]
    return value


def _by_size(runs: Sequence[Run]) -> dict[int, tuple[float, float]]:
    """KiB, and milliseconds of the operator's CPU per second, of each agent, by fleet size."""
    return {
        run.order.agents: (
            run.readings["memory.per_agent_kib"],
            10 * run.readings["off.percent"] / run.order.agents,
        )
        for run in runs
        if {"memory.per_agent_kib", "off.percent"} <= run.readings.keys()
    }


def _page(  # noqa: PLR0913 - what was measured, and where it came from
    runs: Sequence[Run],
    large: Run | None,
    *,
    command: str,
    load: str,
    commit: str,
    drawn: Sequence[str],
) -> str:
    order = runs[0].order
    return PAGE.format(
        plots="".join(f"![{name}](benchmarks/{name}.svg)\n" for name in drawn),
        large=LARGE.format(agents=large.order.agents, interval=large.order.interval)
        if large
        else "",
        command=command,
        date=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        commit=commit,
        load=load,
        busy=BUSY if is_busy(load) else "",
        machine=_machine(),
        kubernetes=VERSION,
        python=platform.python_version(),
        libraries=", ".join(f"{name} {version(name)}" for name in LIBRARIES),
        agents=order.agents,
        runs=len(runs),
        table=table(readings_of(runs, large), busy=is_busy(load)),
        manager=", ".join(f"`--{flag}={value}`" for flag, value in MANAGER_FLAGS.items()),
        flags=" ".join(PRODUCTION),
        interval=INTERVAL_SECONDS,
        seconds=order.seconds,
        share=SHARE,
        freeze=FREEZE_SPREAD,
        allowed=ALLOWED_SECONDS,
        crash=CRASH_SPREAD,
        delay=DELAY_SECONDS,
    )


def is_busy(load: str) -> bool:
    return float(load) > QUIET_LOAD


def load_average() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def _commit() -> str:
    command = ["git", "-C", str(CHECKOUT), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2] for line in lines if line.startswith("model name")), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kernel = platform.release()
    return f"{os.cpu_count()} x {model.strip()}, {memory:.0f} GiB, Linux {kernel}"
