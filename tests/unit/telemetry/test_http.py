from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest

from supervisor_operator.telemetry.http import Probes, serve
from supervisor_operator.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Asked:
    status: int
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Site:
    port: int
    probes: Probes
    metrics: Metrics

    async def get(self, path: str) -> Asked:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.port}{path}") as answer,
        ):
            return Asked(answer.status, await answer.text(), answer.headers["Content-Type"])


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    probes, metrics = Probes(), Metrics("1")
    async with serve("127.0.0.1", 0, probes, metrics) as port:
        yield Site(port, probes, metrics)


async def test_process_without_checks_is_alive_and_ready(site: Site) -> None:
    assert (await site.get("/healthz")).text == "ok"
    assert (await site.get("/readyz")).status == 200


async def test_unwell_checks_say_why_one_per_line(site: Site) -> None:
    site.probes.add_readiness("stores", lambda: "pods were never listed")
    site.probes.add_readiness("lease", lambda: None)
    site.probes.add_readiness("crds", lambda: "supervisors.supervision.dev is missing")
    answer = await site.get("/readyz")
    assert answer.status == 503
    assert answer.text.splitlines() == [
        "stores: pods were never listed",
        "crds: supervisors.supervision.dev is missing",
    ]


async def test_liveness_and_readiness_are_asked_apart(site: Site) -> None:
    site.probes.add_readiness("lease", lambda: "another replica leads")
    assert (await site.get("/healthz")).status == 200
    site.probes.add_liveness("workers", lambda: "all workers have ended")
    answer = await site.get("/healthz")
    assert (answer.status, answer.text) == (503, "workers: all workers have ended")


async def test_check_is_asked_each_time(site: Site) -> None:
    found: list[str | None] = ["still starting"]
    site.probes.add_readiness("start", lambda: found[0])
    assert (await site.get("/readyz")).status == 503
    found[0] = None
    assert (await site.get("/readyz")).status == 200


async def test_verbose_lists_the_well_ones_too(site: Site) -> None:
    site.probes.add_liveness("workers", lambda: None)
    site.probes.add_liveness("loop", lambda: "late by 20 s")
    answer = await site.get("/healthz?verbose")
    assert answer.status == 503
    assert answer.text.splitlines() == ["workers: ok", "loop: late by 20 s"]


async def test_a_note_is_told_to_who_asks_and_makes_nobody_unwell(site: Site) -> None:
    site.probes.add_note("lease", lambda: "standby")
    assert (await site.get("/readyz")).text == "ok"
    answer = await site.get("/readyz?verbose")
    assert (answer.status, answer.text) == (200, "lease: standby")


async def test_check_that_breaks_is_not_well(site: Site) -> None:
    site.probes.add_liveness("odd", lambda: str(1 / 0))
    answer = await site.get("/healthz")
    assert answer.status == 503
    assert "ZeroDivisionError" in answer.text


async def test_metrics_are_served_in_the_format_they_say(site: Site) -> None:
    site.metrics.beats_total.inc(7)
    answer = await site.get("/metrics")
    assert answer.status == 200
    assert answer.kind.startswith("text/plain; version=")
    assert "supervisor_operator_beats_total 7.0" in answer.text


async def test_other_paths_are_not_found(site: Site) -> None:
    assert (await site.get("/")).status == 404


async def test_port_is_free_again_at_the_end() -> None:
    async with serve("127.0.0.1", 0, Probes(), Metrics("1")) as port:
        pass
    async with serve("127.0.0.1", port, Probes(), Metrics("1")) as again:
        assert again == port


async def test_taken_port_is_an_error_of_the_system() -> None:
    async with serve("127.0.0.1", 0, Probes(), Metrics("1")) as port:
        with pytest.raises(OSError, match="address already in use"):
            async with serve("127.0.0.1", port, Probes(), Metrics("1")):
                pass
