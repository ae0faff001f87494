"""Odd heartbeat files beside the relay: told once, in the report and the log, and lived with."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from tests.unit.supervise.harness import powerless_root, until
from tests.unit.supervise.relaying import Pod, a_pod, relaying, told

SIZE = 10 * 1024 * 1024
ODD: dict[str, tuple[Callable[[Pod], Any], str]] = {
    "half-written": (lambda pod: pod.write('{"unix_ts": 17'), "is not whole JSON"),
    "wrong type": (lambda pod: pod.beat(unix_ts="now"), "has a unix_ts that is no number"),
    "wrong metrics": (lambda pod: pod.beat(metrics=[1]), "has metrics that are no object"),
    "large metrics": (lambda pod: pod.beat(metrics={"a": "x" * 4096}), "has metrics over 4 KiB"),
    "no figure": (lambda pod: pod.beat(metrics={"a": float("nan")}), "has metrics over 4 KiB"),
    "directory": (lambda pod: pod.file.mkdir(), "is not a regular file"),
    "10 MiB": (lambda pod: pod.write(" " * SIZE), "is larger than 64 KiB"),
    "future": (lambda pod: pod.beat(age=-3600), "has a time in the future"),
    "past": (lambda pod: pod.beat(unix_ts=17), "has a time of more than a day ago"),
    "no permission": (lambda pod: pod.file.touch(mode=0), "cannot be read (Permission denied)"),
}
NO_BEAT = {"directory"}


def test_each_is_told_once_and_a_good_beat_after_it_arrives(tmp_path: Path) -> None:
    with ExitStack() as stack:  # side by side, because each takes its time
        cases = []
        for kind, (spoil, problem) in ODD.items():
            pod, server = stack.enter_context(a_pod(tmp_path / kind))
            spoil(pod)
            run = stack.enter_context(relaying(pod, server, powerless=powerless_root()))
            cases.append((kind, f"heartbeat file {pod.file} {problem}", pod, server, run))
        for kind, problem, pod, server, run in cases:
            until(partial(server.has_arrived, 3), f"three reports of {kind}")
            for report in server.arrived():
                assert report["problem"].startswith(problem), kind
            assert ("sequence" not in server.arrived()[-1]) == (kind in NO_BEAT), kind
            assert len(told(run, "problem")) == 1, kind
            pod.file.rmdir() if kind in NO_BEAT else pod.file.unlink()
            pod.beat(metrics={"good": 1})
        for kind, _, _, server, _ in cases:
            good = server.until(f"a good beat after {kind}", metrics={"good": 1}, problem=None)
            assert good["beatAgeMillis"] < 5000


def test_an_odd_time_counts_from_the_moment_it_is_seen(tmp_path: Path) -> None:
    with a_pod(tmp_path) as (pod, server), relaying(pod, server):
        for sequence, age in enumerate([-3600, 40 * 86_400], start=1):
            pod.beat(age=age)
            report = server.until("an odd beat", sequence=sequence)
            assert report["beatAgeMillis"] < 5000
            assert report["problem"]


def test_a_mishap_between_two_reports_that_arrive_is_told_too(tmp_path: Path) -> None:
    with a_pod(tmp_path) as (pod, server), relaying(pod, server) as run:
        pod.beat()
        server.until("the first beat", sequence=1)
        server.code = 503
        pod.write("{")
        until(lambda: server.requests[-1].status["problem"], "an attempt to tell it")
        pod.beat(metrics={"good": 1})
        server.code = 200
        report = server.until("the good beat", metrics={"good": 1})
        assert report["problem"] == f"heartbeat file {pod.file} is not whole JSON"
        server.until("the next report", metrics={"good": 1}, problem=None)
        assert len(told(run, "problem")) == 1
