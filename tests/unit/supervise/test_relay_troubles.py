"""The API server is away, refuses, or cannot be asked: the relay says so once and goes on."""

import signal
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from supervise.pod import this_pod
from tests.unit.supervise.harness import until
from tests.unit.supervise.relaying import FIRST_TOKEN, a_pod, relaying, told


def test_an_outage_is_told_once_and_beats_arrive_after_it(tmp_path: Path) -> None:
    with a_pod(tmp_path) as (pod, server), relaying(pod, server) as run:
        pod.beat()
        server.until("a beat before the outage", sequence=1)
        server.stop()
        pod.beat()
        run.until_event("trouble")
        away_until = time.monotonic() + 1.2  # six intervals: several attempts fail
        until(lambda: time.monotonic() > away_until, "a longer outage")
        pod.beat(metrics={"after": 1})
        server.start()
        report = server.until("a beat after the outage", metrics={"after": 1})
        assert report["sequence"] in (2, 3)
        assert report["problem"] is None
        run.until_event("recovered")
        [text] = told(run, "trouble")
        assert text.startswith(f"no answer from 127.0.0.1:{server.port}: ")


def test_a_connection_closed_while_nobody_spoke_is_no_trouble(tmp_path: Path) -> None:
    with a_pod(tmp_path) as (pod, server), relaying(pod, server) as run:
        pod.beat()
        server.until("a beat", sequence=1)
        server.drop_connections()
        pod.beat()
        server.until("a beat on a new connection", sequence=2)
        assert server.accepted == 2
        assert not told(run, "trouble")


def test_an_api_server_that_does_not_answer_is_asked_again(tmp_path: Path) -> None:
    with a_pod(tmp_path, hangs=True) as (pod, server), relaying(pod, server) as run:
        pod.beat()
        assert "timed out" in run.until_event("trouble")["message"]
        server.hangs = False
        until(lambda: server.accepted >= 2, "a new connection")
        run.until_event("recovered")


def test_answers_of_every_kind_are_understood(tmp_path: Path) -> None:
    kept = {"in one piece": True, "in chunks": True, "and closes": False, "until the end": False}
    with ExitStack() as stack:
        cases = []
        for way in kept:
            pod, server = stack.enter_context(a_pod(tmp_path / way, way=way))
            cases.append((way, pod, server, stack.enter_context(relaying(pod, server))))
        for sequence in (1, 2, 3):
            for way, pod, server, _ in cases:
                pod.beat(metrics={"text": "x" * 3000, f"only {sequence}": 1})
                server.until(way, sequence=sequence)
        for way, _, server, run in cases:
            assert set(server.stored["status"]["metrics"]) == {"text", "only 3"}, way
            assert (server.accepted == 1) == kept[way], way
            assert not told(run, "trouble"), way


NO_ANSWERS = {
    "no HTTP: SSH-2.0-OpenSSH_9.2": b"SSH-2.0-OpenSSH_9.2\r\n",
    "the answer is broken off": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{",
    "no size: -1": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "the answer is too large": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
    "no size: zz": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "there are too many header lines": b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200,
    "a line is too long or broken off": b"HTTP/1.1 200 " + b"x" * 9000,
    "the connection was closed": b"",
}


def test_an_answer_that_is_none_is_trouble(tmp_path: Path) -> None:
    with ExitStack() as stack:
        cases = []
        for number, (trouble, raw) in enumerate(NO_ANSWERS.items()):
            pod, server = stack.enter_context(a_pod(tmp_path / str(number), raw=raw))
            pod.beat()
            cases.append((trouble, server, stack.enter_context(relaying(pod, server))))
        for trouble, server, run in cases:
            message = run.until_event("trouble")["message"]
            assert message == f"no answer from 127.0.0.1:{server.port}: {trouble}"
            server.raw = None
        for trouble, server, run in cases:
            server.until(f"the beat after {trouble}", sequence=1)
            run.until_event("recovered")


def test_a_heartbeat_that_is_not_there_yet_is_awaited_in_silence(tmp_path: Path) -> None:
    with a_pod(tmp_path, code=404) as (pod, server), relaying(pod, server) as run:
        pod.beat()
        server.until_refused(times=3)
        server.code = 200
        assert server.until("the beat", sequence=1)["problem"] is None
        assert [event["event"] for event in run.events()] == ["relaying"]


@pytest.mark.parametrize("kept", [True, False], ids=["for people", "passing"])
def test_a_refusal_is_told_once(tmp_path: Path, *, kept: bool) -> None:
    codes = (401, 403, 422) if kept else (429, 500, 503)
    with ExitStack() as stack:
        cases = []
        for code in codes:
            pod, server = stack.enter_context(a_pod(tmp_path / str(code), code=code))
            pod.beat()
            cases.append((code, server, stack.enter_context(relaying(pod, server))))
        for code, server, run in cases:
            server.until_refused(times=3)
            server.code = 200
            text = f"the API server says {code}: because of {code}"
            server.until("the beat", sequence=1, problem=text if kept else None)
            server.until("the next report", sequence=1, problem=None)
            assert told(run, "trouble") == [text]


def test_metrics_that_are_refused_do_not_stop_the_beats(tmp_path: Path) -> None:
    with a_pod(tmp_path, refuses_metrics=True) as (pod, server), relaying(pod, server) as run:
        pod.beat(metrics={"endless": 10**400})
        text = "the API server says 400: because of 400"
        assert server.until("the beat alone", sequence=1, problem=text)["metrics"] is None
        assert told(run, "trouble") == [text]


def test_a_host_that_is_none_is_trouble(tmp_path: Path) -> None:
    wrong = {"KUBERNETES_SERVICE_HOST": "no host\u20ac" + "x" * 70}
    with a_pod(tmp_path) as (pod, server):
        pod.beat()
        with relaying(pod, server, changed=wrong) as run:
            assert "no answer from no host" in run.until_event("trouble")["message"]
            run.send(signal.SIGTERM)
            assert run.code() == 0


def test_the_token_is_read_again(tmp_path: Path) -> None:
    with a_pod(tmp_path) as (pod, server), relaying(pod, server):
        pod.beat()
        server.until("a beat", sequence=1)
        pod.set_token("second\n")
        pod.beat()
        server.until("another", sequence=2)
        assert [request.token for request in server.requests] == [FIRST_TOKEN, "second"]
        assert server.accepted == 1


@pytest.mark.parametrize("token", ["", None], ids=["empty", "missing"])
def test_without_a_token_it_says_so_and_goes_on(tmp_path: Path, token: str | None) -> None:
    with a_pod(tmp_path) as (pod, server):
        pod.set_token("")
        if token is None:
            (pod.tokens / "token").unlink()
        pod.beat()
        with relaying(pod, server) as run:
            text = run.until_event("trouble")["message"]
            assert str(pod.tokens / "token") in text
            assert not server.requests
            pod.set_token("late")
            server.until("the beat", sequence=1, problem=text)
            assert told(run, "trouble") == [text]


def test_a_wrong_ca_is_told_and_a_new_one_taken(tmp_path: Path) -> None:
    with a_pod(tmp_path / "one") as (_, other), a_pod(tmp_path / "two") as (pod, server):
        pod.trust(other)
        pod.beat()
        with relaying(pod, server) as run:
            assert "certificate verify failed" in run.until_event("trouble")["message"]
            (pod.tokens / "ca.crt").write_text("nothing")
            until(lambda: len(told(run, "trouble")) > 1, "trouble with the file")
            assert str(pod.tokens / "ca.crt") in told(run, "trouble")[1]
            pod.trust(server)
            server.until("the beat", sequence=1)


def test_without_a_variable_it_says_which_and_stays(tmp_path: Path) -> None:
    needed = "SUPERVISION_POD_NAME SUPERVISION_NAMESPACE"
    needed += " KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT"
    with ExitStack() as stack:
        cases = []
        for variable in needed.split():
            pod, server = stack.enter_context(a_pod(tmp_path / variable))
            pod.beat()
            run = stack.enter_context(relaying(pod, server, changed={variable: ""}))
            cases.append((variable, server, run))
        for variable, server, run in cases:
            message = run.until_event("trouble")["message"]
            assert message == f"not set in the pod spec: {variable}"
            run.send(signal.SIGTERM)
            assert run.code() == 0
            assert not server.requests


@pytest.mark.parametrize(
    ("variable", "word", "said"),
    [
        ("SUPERVISION_POD_NAME", "../x y", "must be a name, not ../x y"),
        ("KUBERNETES_SERVICE_PORT", "https", "must be a port, not https"),
        ("KUBERNETES_SERVICE_PORT", "70000", "must be a port, not 70000"),
    ],
)
def test_a_wrong_variable_is_told(variable: str, word: str, said: str) -> None:
    right = {
        "SUPERVISION_POD_NAME": "hello-r1",
        "SUPERVISION_NAMESPACE": "farm",
        "KUBERNETES_SERVICE_HOST": "fd00::1",
        "KUBERNETES_SERVICE_PORT": "443",
    }
    assert this_pod(right).obstacle == ""
    assert this_pod({**right, variable: word}).obstacle == f"{variable} {said}"


def test_a_wrong_interval_is_told_and_the_usual_one_taken(tmp_path: Path) -> None:
    with a_pod(tmp_path) as (pod, server):
        pod.beat()
        with relaying(pod, server, changed={"SUPERVISION_INTERVAL_SECONDS": "soon"}):
            report = server.until("the beat", sequence=1)
        assert report["problem"] == (
            "SUPERVISION_INTERVAL_SECONDS must be seconds, not soon: using 30"
        )
