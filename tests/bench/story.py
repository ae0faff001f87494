"""One run: one fresh cluster, the scenes that were asked for, and the numbers that came of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import Any

from supervisor_operator.kube.cluster import SUPERVISORS, Object
from tests.bench.api import path_of
from tests.bench.beating import Beating, beating
from tests.bench.bringup import BringUp, bring_up
from tests.bench.coldstart import ColdStart, cold_start
from tests.bench.cost import cpu_of, since
from tests.bench.fleet import (
    INTERVAL_SECONDS,
    JOBS,
    a_beating_agent,
    a_job,
    a_silent_agent,
    names,
)
from tests.bench.restarts import crash_some
from tests.bench.say import BenchError, say
from tests.bench.scrape import LEASE, Scrape
from tests.bench.stage import ACTIVE_SECONDS, Running, Stage, bare_reader, open_stage
from tests.bench.steady import Window, watch_window
from tests.bench.verdicts import Verdicts, freeze_some

API, MANAGER, OPERATOR = "kube-apiserver", "kube-controller-manager", "operator"
COLUMN_OFF = "--heartbeat-writes-per-second=0"
KIB, MIB = 1024, 1024 * 1024
BASE_SECONDS = 10.0
CALM_SECONDS = 15.0
SHARE = 10
"""One in so many agents freezes, and another one crashes."""
BRING_UP = frozenset({"S1", "S10", "S11"})
STEADY = frozenset({"S3", "S4", "S5"})
EVERYTHING = BRING_UP | STEADY | {"S2", "S6", "S7"}


@dataclass(frozen=True, slots=True)
class Order:
    agents: int
    seconds: float
    """Length of one window of steady beating."""
    wanted: frozenset[str]
    interval: int = INTERVAL_SECONDS
    """Seconds from beat to beat."""


@dataclass(slots=True)
class Run:
    """`readings` go into the table, `samples` are what they were made of."""

    order: Order
    readings: dict[str, float] = field(default_factory=dict)
    samples: dict[str, Any] = field(default_factory=dict)

    def wants(self, *ids: str) -> bool:
        return bool(self.order.wanted.intersection(ids))

    def read(self, scene: str, **readings: float) -> None:
        self.readings |= {f"{scene}.{name}": value for name, value in readings.items()}


async def play(order: Order) -> Run:
    run = Run(order)
    async with open_stage() as stage:
        if run.wants(*BRING_UP):
            await _jobs(run, stage)
        if run.wants(*BRING_UP, "S4"):
            await _without_beats(run, stage)
        await _with_beats(run, stage)
        run.samples["watches_ended"] = stage.api.watches_ended
    return run


async def play_large(order: Order) -> Run:
    """A fleet so large that growth shows: source File, and beats at long intervals."""
    run = Run(order)
    agents = names(order.agents)
    async with open_stage() as stage, AsyncExitStack() as stack:
        namespace = await stage.make_namespace("bench-large")
        items = [a_beating_agent(name, order.interval) for name in agents]
        async with stage.operator(COLUMN_OFF) as operator:
            await _fleet_up(run, stage, operator, namespace, items)
            await _idle(run, {OPERATOR: operator.pid})
            await stack.enter_async_context(beating(stage.api, namespace, agents, order.interval))
            await _until_calm(run, operator)
            window = await _window(run, stage, operator, "off")
            base = run.readings["memory.base_mib"] * MIB
            run.read("memory", per_agent_kib=(window.resident - base) / len(agents) / KIB)
        async with cold_start(stage, namespace, len(agents), COLUMN_OFF) as (_, cold):
            _note_cold(run, cold)
    return run


async def _fleet_up(
    run: Run, stage: Stage, operator: Running, namespace: str, items: list[Object]
) -> None:
    await asyncio.sleep(BASE_SECONDS)
    run.read("memory", base_mib=operator.resident / MIB)
    pids = stage.programs | {OPERATOR: operator.pid}
    done = await bring_up(
        stage, namespace, SUPERVISORS, items, pids=pids, is_settled=operator.settled()
    )
    _note_bring_up(run, "file", done, OPERATOR)
    _note_calls(run, "file", await operator.scrape())


def _note_cold(run: Run, cold: ColdStart) -> None:
    run.samples["cold_start"] = asdict(cold)
    run.read(
        "cold",
        ratio=cold.ratio,
        seconds=cold.until_idle,
        lists=cold.lists,
        mib=cold.resident / MIB,
    )


async def _jobs(run: Run, stage: Stage) -> None:
    namespace = await stage.make_namespace("bench-jobs")
    items = [a_job(name) for name in names(run.order.agents)]

    async def are_settled() -> bool:
        listed = json.loads(await stage.api.must("GET", path_of(JOBS, namespace)))
        return all(item["status"].get("ready") == 1 for item in listed["items"])

    done = await bring_up(
        stage, namespace, JOBS, items, pids=stage.programs, is_settled=are_settled
    )
    _note_bring_up(run, "jobs", done, MANAGER)
    await stage.clear(namespace)


async def _without_beats(run: Run, stage: Stage) -> None:
    namespace = await stage.make_namespace("bench-none")
    items = [a_silent_agent(name) for name in names(run.order.agents)]
    async with stage.operator() as operator:
        pids = stage.programs | {OPERATOR: operator.pid}
        done = await bring_up(
            stage, namespace, SUPERVISORS, items, pids=pids, is_settled=operator.settled()
        )
        _note_bring_up(run, "none", done, OPERATOR)
        _note_calls(run, "none", await operator.scrape())
        if run.wants("S4"):
            await _idle(run, pids)
    await stage.clear(namespace)


async def _idle(run: Run, pids: Mapping[str, int]) -> None:
    seconds = run.order.seconds / 2
    say(f"measuring {seconds:.0f} s without beats")
    before, started = cpu_of(pids), time.monotonic()
    await asyncio.sleep(seconds)
    cpu, took = since(before, cpu_of(pids)), time.monotonic() - started
    run.samples["idle"] = {"seconds": took, "cpu": cpu}
    run.read("idle", percent=100 * cpu[OPERATOR] / took)


async def _with_beats(run: Run, stage: Stage) -> None:
    namespace = await stage.make_namespace("bench-file")
    agents = names(run.order.agents)
    items = [a_beating_agent(name) for name in agents]
    async with AsyncExitStack() as stack:
        async with stage.operator(COLUMN_OFF) as operator:
            await _fleet_up(run, stage, operator, namespace, items)
            base = run.readings["memory.base_mib"] * MIB
            if not run.order.wanted - BRING_UP:
                return
            beats = await stack.enter_async_context(beating(stage.api, namespace, agents))
            await _until_calm(run, operator)
            if run.wants(*STEADY):
                window = await _window(run, stage, operator, "off")
                run.read("memory", per_agent_kib=(window.resident - base) / len(agents) / KIB)
        await _by_default(run, stage, namespace, beats)


async def _by_default(run: Run, stage: Stage, namespace: str, beats: Beating) -> None:
    """The same fleet under an operator that was started anew, with all settings as they come."""
    agents = names(run.order.agents)
    async with cold_start(stage, namespace, len(agents)) as (operator, cold):
        _note_cold(run, cold)
        await _until_calm(run, operator)
        if run.wants(*STEADY):
            await _window(run, stage, operator, "default")
            run.read("memory", after_restart_mib=operator.resident / MIB)
        if run.wants("S2"):
            victims = agents[::SHARE]
            _note_verdicts(run, await freeze_some(stage, namespace, beats, operator, victims))
        if run.wants("S7"):
            beyond = await crash_some(stage, namespace, beats, agents[1::SHARE])
            run.samples["beyond_delay"] = beyond
            run.read("restart", **_percentiles(beyond))
    run.samples["refused_beats"] = dict(beats.refused)


async def _until_calm(run: Run, operator: Running) -> None:
    say("waiting for all agents to be ACTIVE, and calm")
    await operator.until_active(run.order.agents, ACTIVE_SECONDS + 2 * run.order.interval)
    await asyncio.sleep(CALM_SECONDS)


async def _window(run: Run, stage: Stage, operator: Running, name: str) -> Window:
    async with bare_reader(stage) as reader:
        await reader.count()
        await asyncio.sleep(2)
        window = await watch_window(stage, operator, reader, run.order.seconds)
    if not window.beats or not window.read:
        raise BenchError("nobody beat while it was measured")
    run.samples[f"window_{name}"] = asdict(window)
    each = 1000 * window.cpu[OPERATOR] / window.beats
    bare = 1000 * window.cpu["reader"] / window.read
    run.read(
        name,
        writes=sum(window.writes.values()),
        beats_per_second=window.beats / window.seconds,
        passes_per_second=window.passes / window.seconds,
        passes_share=100 * window.passes_seconds / window.cpu[OPERATOR],
        percent=100 * window.cpu[OPERATOR] / window.seconds,
        ms_per_beat=each,
        reader_ms=bare,
        ratio=each / bare,
        api_ms=1000 * window.cpu[API] / window.beats,
    )
    return window


def _note_bring_up(run: Run, name: str, done: BringUp, controller: str) -> None:
    run.samples[f"bring_up_{name}"] = asdict(done)
    api, own = done.millis_each(API), done.millis_each(controller)
    run.read(name, per_second=done.per_second, api_ms=api, controller_ms=own)
    if "jobs.per_second" in run.readings:
        run.read(
            name,
            rate_ratio=done.per_second / run.readings["jobs.per_second"],
            api_ratio=api / run.readings["jobs.api_ms"],
        )


def _note_calls(run: Run, name: str, told: Scrape) -> None:
    """All since the operator's start: what little it asks at its start is spread over the fleet."""
    count = run.order.agents
    calls: dict[str, float] = {}
    for labels, number in told.find("api_calls_total"):
        if labels["resource"] != LEASE:
            calls[f"{labels['verb']} {labels['resource']} {labels['code']}"] = number
    run.samples[f"calls_{name}"] = calls
    run.read(
        name, requests=sum(calls.values()) / count, passes=told.total("reconcile_total") / count
    )


def _note_verdicts(run: Run, found: Verdicts) -> None:
    histogram = "detection_latency_seconds"
    run.samples["late"] = found.late
    run.samples["wrongly_unresponsive"] = found.wrongly
    run.samples["late_by_operator"] = {
        labels["le"]: count for labels, count in found.told.find(f"{histogram}_bucket")
    }
    run.read("late", **_percentiles(found.late))
    run.read(
        "late",
        min=1000 * found.late[0],
        wrong=len(found.wrongly),
        own_p50=1000 * found.told.quantile(histogram, 0.5),
        own_p99=1000 * found.told.quantile(histogram, 0.99),
    )


def _percentiles(seconds: tuple[float, ...]) -> dict[str, float]:
    """In milliseconds, by nearest rank; `seconds` are in order."""
    ranks = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {name: 1000 * seconds[ceil(rank * len(seconds)) - 1] for name, rank in ranks.items()}
