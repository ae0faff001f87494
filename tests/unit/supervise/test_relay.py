"""The relay carries beats: what it writes, how often, and what a new relay makes of an old beat."""

import os
import signal
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from tests.unit.supervise.harness import memory, until
from tests.unit.supervise.relaying import FIRST_TOKEN, PATH, a_pod, relaying, told

MEBIBYTE = 1024  # in KiB


def test_a_beat_arrives_whole(tmp_path: Path) -> None:
    with a_pod(tmp_path) as (pod, server), relaying(pod, server):
        pod.beat(metrics={"trades": 3}, busy_seconds=89.2)
        report = server.until("the first beat", sequence=1)
        assert 0 <= report["beatAgeMillis"] < 5000
        assert report["metrics"] == {"trades": 3}
        assert report["busySeconds"] == 90
        assert report["problem"] is None
        for moment in (report["beatTime"], report["relayTime"]):
            assert time.strptime(moment, "%Y-%m-%dT%H:%M:%SZ")
        request = server.requests[-1]
        assert request.path == PATH
        assert request.token == FIRST_TOKEN
        assert request.kind == "application/merge-patch+json"


def test_before_the_first_beat_only_the_relay_is_reported(tmp_path: Path) -> None:
    with a_pod(tmp_path) as (pod, server), relaying(pod, server) as run:
        until(partial(server.has_arrived, 3), "three reports without a beat")
        for report in server.arrived():
            assert set(report) == {"relayTime", "problem"}
            assert report["problem"] == f"no file {pod.file}"
        assert told(run, "problem") == [f"no file {pod.file}"]
        pod.beat()
        assert server.until("the first beat", sequence=1)["problem"] is None


def test_each_beat_costs_one_request_on_one_connection(tmp_path: Path) -> None:
    with a_pod(tmp_path) as (pod, server), relaying(pod, server, interval=0.6):
        for sequence in range(1, 5):
            pod.beat()
            server.until("the beat", sequence=sequence)
        assert len(server.requests) == 4
        assert server.accepted == 1


def test_an_agent_that_beats_all_the_time_is_reported_twice_an_interval(tmp_path: Path) -> None:
    with a_pod(tmp_path) as (pod, server), relaying(pod, server, interval=0.6):

        def enough() -> bool:
            pod.beat()
            return len(server.requests) >= 4

        until(enough, "four reports")
        gaps = [later.moment - sooner.moment for sooner, later in pairwise(server.requests)]
        assert min(gaps) >= 0.3
        sequences = [report["sequence"] for report in server.arrived()]
        assert sequences == sorted(set(sequences))


def test_a_silent_agent_is_reported_with_a_growing_age(tmp_path: Path) -> None:
    with a_pod(tmp_path) as (pod, server), relaying(pod, server):
        pod.beat(age=30)
        until(partial(server.has_arrived, 3), "three reports of one beat")
        reports = server.arrived()[:3]
        assert {report["sequence"] for report in reports} == {1}
        assert len({report["beatTime"] for report in reports}) == 1
        ages = [report["beatAgeMillis"] for report in reports]
        assert ages[0] == pytest.approx(30_000, abs=5000)
        real = (server.requests[2].moment - server.requests[0].moment) * 1000
        assert ages[2] - ages[0] == pytest.approx(real, abs=200)


def test_touching_the_file_is_beating(tmp_path: Path) -> None:
    with a_pod(tmp_path) as (pod, server), relaying(pod, server):
        pod.file.touch()
        assert server.until("a beat", sequence=1)["problem"] is None
        os.utime(pod.file)
        server.until("another", sequence=2)


def test_metrics_are_replaced_not_mixed(tmp_path: Path) -> None:
    with a_pod(tmp_path) as (pod, server), relaying(pod, server):
        pod.beat(metrics={"old": 1, "both": {"a": 1, "b": 1}})
        server.until("the first", sequence=1)
        pod.beat(metrics={"new": 2, "both": {"b": 2}})
        server.until("the second", sequence=2)
        assert server.stored["status"]["metrics"] == {"new": 2, "both": {"b": 2}}
        pod.beat()
        server.until("the third", sequence=3)
        assert "metrics" not in server.stored["status"]


def test_a_relay_started_again_goes_on_counting_and_knows_the_age(tmp_path: Path) -> None:
    with a_pod(tmp_path) as (pod, server):
        server.stored = {"status": {"sequence": 41, "metrics": {"old": 1}}}
        pod.beat(age=100, metrics={"new": 2})
        with relaying(pod, server):
            report = server.until("the beat that was there", sequence=42)
        assert report["beatAgeMillis"] == pytest.approx(100_000, abs=5000)
        assert server.stored["status"]["metrics"] == {"new": 2}
        assert "sequence" not in server.arrived()[0]
        assert len(server.requests) == 2


def test_it_takes_at_most_20_mib(tmp_path: Path) -> None:
    with a_pod(tmp_path) as (pod, server), relaying(pod, server) as run:
        for sequence in range(1, 4):
            pod.beat(metrics={"text": "x" * 3000})
            server.until("a beat", sequence=sequence)
        assert memory(run.process.pid) <= 20 * MEBIBYTE


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_ends_it_at_once_and_the_last_beat_goes_out(
    tmp_path: Path, signum: int
) -> None:
    with a_pod(tmp_path) as (pod, server), relaying(pod, server, interval=2) as run:
        pod.beat()
        server.until("the first beat", sequence=1)
        pod.beat()  # too soon after the first to be reported now
        began = time.monotonic()
        run.send(signum)
        assert run.code() == 0
        assert time.monotonic() - began < 1
        assert server.until("the last beat", sequence=2)
        assert told(run, "stopped") == [f"stopped by {signal.Signals(signum).name}"]
        assert run.told.count("\n") == len(run.events())  # nothing but events: no traceback


def test_a_stop_signal_ends_it_also_while_the_api_server_hangs(tmp_path: Path) -> None:
    with a_pod(tmp_path, hangs=True) as (pod, server):
        pod.beat()
        with relaying(pod, server, interval=5) as run:
            until(lambda: server.requests, "a request that hangs")
            began = time.monotonic()
            run.send(signal.SIGTERM)
            assert run.code() == 0
            assert time.monotonic() - began < 1
            assert "Traceback" not in run.told
