"""The bench itself: figures come out as they should, and nothing is lost without a word."""

from __future__ import annotations

import ssl
from contextlib import aclosing
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from tests.bench import sizing
from tests.bench.agree import compare, usual
from tests.bench.api import Api
from tests.bench.plots import draw
from tests.bench.rows import Row, table, with_growth
from tests.bench.scrape import Scrape
from tests.bench.story import _percentiles
from tests.support.kubeconfig import Access

BEFORE = """\
supervisor_operator_beats_total 10.0
late_bucket{le="0.1"} 1.0
late_bucket{le="0.5"} 1.0
late_bucket{le="+Inf"} 1.0
"""
AFTER = """\
supervisor_operator_beats_total 25.0
late_bucket{le="0.1"} 100.0
late_bucket{le="0.5"} 101.0
late_bucket{le="+Inf"} 101.0
"""


def test_percentiles_are_samples_that_were_measured() -> None:
    seconds = tuple(number / 1000 for number in range(1, 101))
    assert _percentiles(seconds) == pytest.approx({"p50": 50, "p99": 99, "max": 100})
    assert _percentiles((0.007,)) == pytest.approx({"p50": 7, "p99": 7, "max": 7})


def test_metrics_are_told_between_two_scrapes() -> None:
    told = Scrape.of(AFTER) - Scrape.of(BEFORE)
    assert told.total("beats_total") == 15
    assert told.quantile("late", 0.99) == 0.1
    assert told.quantile("late", 1.0) == 0.5
    assert told.quantile("unknown", 0.5) == 0


@pytest.mark.parametrize(
    ("row", "values", "verdict"),
    [
        (Row("S1", "rate", "x", at_least=1.0), [1.0], "met"),
        (Row("S1", "rate", "x", at_least=1.0), [0.99], "**missed**"),
        (Row("S2", "late", "x", "ms", at_most=250), [100, 900, 200], "met"),
        (Row("S3", "writes", "x", at_most=0), [1], "**missed**"),
        (Row("", "context", "x"), [1], "-"),
    ],
)
def test_the_median_is_held_against_the_goal(row: Row, values: list[float], verdict: str) -> None:
    cells = row.cells([{"x": value} for value in values])
    assert cells is not None
    assert cells[-1] == verdict


def test_what_was_not_measured_is_not_in_the_table() -> None:
    assert "S7" not in table([{"late.p99": 12.0}], busy=False)
    assert "12 ms" in table([{"late.p99": 12.0}], busy=False)


def test_a_busy_machine_judges_no_wall_time_neither_way() -> None:
    row = Row("S1", "rate", "x", at_least=1.0, wall=True)
    assert {row.verdict(value, busy=True) for value in (0.5, 1.5)} == {"not judged"}
    assert Row("S3", "writes", "x", at_most=0).verdict(1, busy=True) == "**missed**"


async def test_a_watch_that_the_server_ends_is_taken_up_again() -> None:
    async def one_event(_: web.Request) -> web.Response:
        return web.Response(text='{"type": "ADDED", "object": {}}\n')

    app = web.Application()
    app.router.add_get("/pods", one_event)
    async with TestServer(app) as server, ClientSession() as session:
        address = str(server.make_url("")).rstrip("/")
        api = Api(Access(address, ssl.create_default_context(), None), session)
        async with aclosing(api.watch("/pods")) as events:
            seen = [await anext(events) for _ in range(3)]
    assert len(seen) == 3
    assert api.watches_ended == 2


def test_growth_is_what_a_large_fleet_costs_of_the_usual_one() -> None:
    usual = [{"file.per_second": 40.0, "off.ms_per_beat": number} for number in (0.1, 0.2, 0.9)]
    found = with_growth(usual, {"file.per_second": 20.0, "off.ms_per_beat": 0.3}, 5000)
    assert found["growth.rate"] == pytest.approx(2.0)
    assert found["growth.beat"] == pytest.approx(1.5)
    assert found["large.agents"] == 5000
    assert "growth.memory" not in found


def test_plots_are_drawn_of_what_was_measured(tmp_path: Path) -> None:
    samples = {"bring_up_jobs": {"running_at": [0.5, 1.0, 2.0]}, "late": (0.01, 0.2, 0.02)}
    assert draw(tmp_path, samples, {1000: (9.0, 0.1)}) == ["pods", "detection"]
    assert draw(tmp_path, {}, {1000: (9.0, 0.1), 5000: (8.0, 0.1)}) == ["growth"]
    for name in ("pods", "detection", "growth"):
        root = ET.fromstring((tmp_path / f"{name}.svg").read_text())  # noqa: S314 - ours
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert len(root) > 10


def test_sizes_are_costs_times_agents() -> None:
    each = dict.fromkeys(sizing.NEEDED | {"cold.mib"}, 1.0) | {"file.per_second": 10.0}
    text = sizing.page(sizing.Costs(1000, each), sizing.Costs(10_000, each))
    assert text
    assert "| 100 | 0.00333 cores | 1 MiB | 0.00 cores | 3.8 /s | 10 s, CPU 0 s + 0 s |" in text
    assert "| 10,000 | 0.333 cores | 11 MiB |" in text
    assert text.count("| 10,000 |") == 1
    reckoned = sizing.page(sizing.Costs(1000, each), sizing.Costs(4000, each))
    assert reckoned
    assert "| 10,000 | 0.333 cores | 11 MiB |" in reckoned
    assert sizing.page(sizing.Costs(1000, {}), sizing.Costs(10_000, each)) is None


@pytest.mark.parametrize(
    ("second", "agree"), [([1.1, 1.3], "yes"), ([1.3, 1.2], "yes"), ([1.5], "no"), ([0.5], "no")]
)
def test_two_tables_agree_where_their_spreads_meet(second: list[float], agree: str) -> None:
    runs = [{"agents": 1000, "readings": {"x": value}} for value in (1.0, 1.2)]
    first = usual([*runs, {"agents": 9, "readings": {"x": 9.0}}])
    cells = compare(Row("S1", "rate", "x", "/s"), first, [{"x": value} for value in second])
    assert cells
    assert cells[2:3] + cells[-1:] == ["1.1 /s", agree]
