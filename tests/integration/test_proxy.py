"""The proxy that makes trouble for the operator, shown with other clients of a real API server."""

from __future__ import annotations

import hashlib
import http.client
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pytest

from tests.cluster.local import Cluster
from tests.support.api_call import Call
from tests.support.kubeconfig import write_plain_kubeconfig
from tests.support.kubectl import Kubectl
from tests.support.proxy import ApiProxy

WRITER = """
import http.client, json, os, sys, threading
host, namespace = sys.argv[1:]
path = f"/api/v1/namespaces/{namespace}/configmaps"
kind = {"Content-Type": "application/json"}

def write(thread):
    line = http.client.HTTPConnection(host)
    for number in range(100):
        item = {"metadata": {"name": f"map-{thread}-{number}"}}
        line.request("POST", path, json.dumps(item), kind)
        answer = line.getresponse()
        assert answer.status == 201, answer.read()
        answer.read()
        os.write(1, f"map-{thread}-{number} ".encode())

for thread in range(8):
    threading.Thread(target=write, args=[thread]).start()
"""


@pytest.fixture
def proxy(control: Cluster) -> Iterator[ApiProxy]:
    with ApiProxy(control.kubeconfig) as proxy:
        yield proxy


@pytest.fixture
def through(kubectl: Kubectl, proxy: ApiProxy) -> Kubectl:
    """kubectl in the test's namespace, by way of the proxy."""
    return by_proxy(kubectl, proxy)


def by_proxy(kubectl: Kubectl, proxy: ApiProxy) -> Kubectl:
    return replace(kubectl, cluster=replace(kubectl.cluster, kubeconfig=str(proxy.kubeconfig)))


@dataclass(frozen=True, slots=True)
class Watcher:
    """A `kubectl get --watch` that runs."""

    process: subprocess.Popen[bytes]

    def line(self, seconds: float = 30.0) -> str | None:
        """The next line; None where none comes in time."""
        assert self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        return self.process.stdout.readline().decode().strip() if ready else None


@contextmanager
def watching(kubectl: Kubectl, proxy: ApiProxy, plural: str) -> Iterator[Watcher]:
    known = proxy.open_watches(plural)
    command = [
        kubectl.cluster.kubectl,
        f"--kubeconfig={kubectl.cluster.kubeconfig}",
        f"--namespace={kubectl.namespace}",
        *("get", plural, "--watch-only", "--output=name"),
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, bufsize=0) as process:
        try:
            proxy.wait_for(lambda: proxy.open_watches(plural) > known)
            yield Watcher(process)
        finally:
            process.kill()


def names(kubectl: Kubectl, plural: str) -> list[str]:
    items = kubectl("get", plural, "--output=json").json["items"]
    return [item["metadata"]["name"] for item in items]


def test_writes_are_logged_in_order(through: Kubectl, proxy: ApiProxy) -> None:
    through("create", "configmap", "one")
    through("label", "configmap", "one", "colour=red")
    through.ask("create", "configmap", "one")
    through("delete", "configmap", "one")
    maps = f"/api/v1/namespaces/{through.namespace}/configmaps"
    assert [(w.number, w.verb, w.path, w.status) for w in proxy.writes] == [
        (1, "create", maps, 201),
        (2, "patch", f"{maps}/one", 200),
        (3, "create", maps, 409),
        (4, "delete", f"{maps}/one", 200),
    ]
    assert all(write.user_agent.startswith("kubectl/") for write in proxy.writes)
    patch = b'{"metadata":{"labels":{"colour":"red"}}}'
    assert proxy.writes[1].body_digest == hashlib.sha256(patch).hexdigest()[:16]


def test_reads_and_dry_runs_are_counted_but_are_no_writes(
    through: Kubectl, proxy: ApiProxy
) -> None:
    through("get", "secrets")
    through("get", "secrets")
    through("create", "configmap", "one", "--dry-run=server")
    assert proxy.writes == ()
    assert proxy.calls("list", "secrets") == 2
    assert proxy.calls("create", "configmaps", "kubectl") == 1
    assert proxy.calls("create", "configmaps", "kopf") == 0


def test_refused_call_never_reaches_the_server_and_the_next_one_does(
    kubectl: Kubectl, through: Kubectl, proxy: ApiProxy
) -> None:
    refusal = proxy.refuse(
        lambda call: (call.verb, call.plural) == ("create", "configmaps"),
        status=403,
        message="exceeded quota: maps",
        times=2,
    )
    for _ in range(2):
        answer = through.ask("create", "configmap", "one")
        assert answer.code == 1
        assert "exceeded quota: maps" in answer.err
    assert "one" not in names(kubectl, "configmaps")
    through("create", "secret", "generic", "other")
    through("create", "configmap", "one")
    assert "one" in names(kubectl, "configmaps")
    assert refusal.refused == 2
    assert [write.status for write in proxy.writes] == [403, 403, 201, 201]


def test_watch_streams_events_as_they_come(
    kubectl: Kubectl, through: Kubectl, proxy: ApiProxy
) -> None:
    with watching(through, proxy, "configmaps") as watcher:
        kubectl("create", "configmap", "one")
        assert watcher.line() == "configmap/one"
        large = {"kind": "ConfigMap", "metadata": {"name": "two"}, "data": {"a": "x" * 900_000}}
        kubectl.create({"apiVersion": "v1", **large})
        assert watcher.line() == "configmap/two"
    proxy.wait_for(lambda: proxy.open_watches() == 0)


def test_cut_ends_the_watches_of_one_plural_only(
    kubectl: Kubectl, through: Kubectl, proxy: ApiProxy
) -> None:
    with (
        watching(through, proxy, "configmaps") as maps,
        watching(through, proxy, "secrets") as secrets,
    ):
        assert proxy.cut_watches("configmaps") == 1
        maps.process.wait(30)
        kubectl("create", "secret", "generic", "still")
        assert secrets.line() == "secret/still"
        assert proxy.cut_watches() == 1
        secrets.process.wait(30)


def test_gone_is_told_to_one_watch_and_the_next_one_works(
    kubectl: Kubectl, through: Kubectl, proxy: ApiProxy
) -> None:
    gone = proxy.gone_next_watch("configmaps")
    assert not gone.happened
    answer = through.ask("get", "configmaps", "--watch-only")
    assert "Expired   too old resource version" in answer.out
    gone.wait()
    with watching(through, proxy, "configmaps") as watcher:
        kubectl("create", "configmap", "one")
        assert watcher.line() == "configmap/one"


def test_held_watch_is_silent_until_it_is_released(
    kubectl: Kubectl, through: Kubectl, proxy: ApiProxy
) -> None:
    with (
        watching(through, proxy, "configmaps") as maps,
        watching(through, proxy, "secrets") as secrets,
    ):
        proxy.hold_watch("configmaps")
        for name in ("one", "two"):
            kubectl("create", "configmap", name)
        kubectl("create", "secret", "generic", "later")
        assert secrets.line() == "secret/later"
        assert maps.line(seconds=0.3) is None
        proxy.release_watch("configmaps")
        assert [maps.line(), maps.line()] == ["configmap/one", "configmap/two"]


@pytest.mark.parametrize(("when", "stored"), [("before", 19), ("after", 20)])
def test_killed_client_has_written_exactly_so_much(
    kubectl: Kubectl, proxy: ApiProxy, when: Literal["before", "after"], stored: int
) -> None:
    host = proxy.url.removeprefix("http://")
    kill = proxy.kill_at(20, when, lambda: process.pid)
    command = [sys.executable, "-c", WRITER, host, kubectl.namespace]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        told, _ = process.communicate(timeout=30)
    kill.wait()
    assert process.returncode == -9
    made = [name for name in names(kubectl, "configmaps") if name.startswith("map-")]
    assert len(made) == stored
    assert set(told.split()) <= set(made)
    assert len(told.split()) <= 19
    assert [write.status for write in proxy.writes] == [201] * stored + [None] * (20 - stored)


def test_proxy_serves_the_next_client_after_a_kill(
    kubectl: Kubectl, through: Kubectl, proxy: ApiProxy
) -> None:
    with watching(through, proxy, "configmaps") as watcher:
        kill = proxy.kill_at(1, "before", lambda: watcher.process.pid)
        assert through.ask("create", "configmap", "lost").code == 1
        kill.wait()
    through("create", "configmap", "kept")
    assert {"lost", "kept"} & set(names(kubectl, "configmaps")) == {"kept"}


def test_hooks_act_right_before_and_right_after_a_write(
    kubectl: Kubectl, through: Kubectl, proxy: ApiProxy
) -> None:
    seen: list[bool] = []

    def look() -> None:
        seen.append("one" in names(kubectl, "configmaps"))

    proxy.before_write(1, look)
    proxy.after_write(1, look)
    through("create", "configmap", "one")
    assert seen == [False, True]


def test_hook_that_fails_fails_the_test(kubectl: Kubectl, control: Cluster) -> None:
    def story() -> None:
        with ApiProxy(control.kubeconfig) as proxy:
            proxy.before_write(1, lambda: 1 / 0)
            by_proxy(kubectl, proxy)("create", "configmap", "one")

    with pytest.raises(ExceptionGroup, match="hooks of the proxy failed"):
        story()


def test_server_that_is_away_looks_like_a_broken_line(tmp_path: Path) -> None:
    away = write_plain_kubeconfig(tmp_path / "config", "http://127.0.0.1:1")
    with ApiProxy(away) as proxy:
        line = http.client.HTTPConnection(proxy.url.removeprefix("http://"), timeout=30)
        line.request("GET", "/api/v1/pods")
        with pytest.raises(ConnectionError):
            line.getresponse()
        line.close()


def creates_a_map(call: Call) -> bool:
    return (call.verb, call.plural) == ("create", "configmaps")


def revision_of(kubectl: Kubectl, plural: str) -> str:
    path = f"/api/v1/namespaces/{kubectl.namespace}/{plural}"
    return str(kubectl("get", "--raw", path).json["metadata"]["resourceVersion"])


def test_lost_answer_is_of_a_write_that_the_server_made(
    kubectl: Kubectl, through: Kubectl, proxy: ApiProxy
) -> None:
    loss = proxy.lose_answers(creates_a_map)
    assert through.ask("create", "configmap", "one").code == 1
    assert "one" in names(kubectl, "configmaps")
    through("create", "configmap", "two")
    assert loss.lost == 1
    assert [write.status for write in proxy.writes] == [201, 201]


def test_delayed_call_takes_so_long(through: Kubectl, proxy: ApiProxy) -> None:
    delay = proxy.delay(creates_a_map, 0.5)
    start = time.monotonic()
    through("create", "configmap", "one")
    assert time.monotonic() - start > 0.5
    delay.seconds = 0.0
    through("create", "configmap", "two")


def test_refusal_says_when_to_come_again(proxy: ApiProxy) -> None:
    proxy.refuse(lambda call: call.plural == "pods", 429, "too many", retry_after=7)
    line = http.client.HTTPConnection(proxy.url.removeprefix("http://"), timeout=30)
    line.request("GET", "/api/v1/pods")
    answer = line.getresponse()
    assert (answer.status, answer.headers["Retry-After"]) == (429, "7")
    line.close()


def test_unwell_server_fails_the_same_calls_for_the_same_seed(proxy: ApiProxy) -> None:
    def ask() -> str:
        line = http.client.HTTPConnection(proxy.url.removeprefix("http://"), timeout=30)
        try:
            line.request("GET", "/version")
            return str(line.getresponse().status)
        except (ConnectionError, http.client.HTTPException):
            return "broken"
        finally:
            line.close()

    tellings = []
    for _ in range(2):
        unrest = proxy.be_unwell(0.3, seed=7)
        tellings.append([ask() for _ in range(60)])
        assert 8 < unrest.failed < 30
    assert tellings[0] == tellings[1]
    assert {"200", "broken"} < set(tellings[0])
    unrest.rate = 0.0
    assert {ask() for _ in range(20)} == {"200"}


def test_the_past_is_shown_until_the_server_catches_up(
    kubectl: Kubectl, through: Kubectl, proxy: ApiProxy
) -> None:
    kubectl("create", "configmap", "old")
    before = revision_of(kubectl, "configmaps")
    with watching(through, proxy, "configmaps") as maps:
        proxy.show_past("configmaps", before)
        kubectl("delete", "configmap", "old")
        kubectl("create", "configmap", "new")
        seen = set(names(through, "configmaps"))
        assert ("old" in seen, "new" in seen) == (True, False)
        assert maps.line(seconds=0.3) is None
        proxy.show_present("configmaps")
        assert [maps.line(), maps.line()] == ["configmap/old", "configmap/new"]
    assert "old" not in names(through, "configmaps")


def test_list_comes_in_another_order(kubectl: Kubectl, through: Kubectl, proxy: ApiProxy) -> None:
    for number in range(6):
        kubectl("create", "secret", "generic", f"s{number}")
    proxy.shuffle_lists("secrets", seed=1)
    found = names(through, "secrets")
    assert found != sorted(found)
    assert sorted(found) == names(kubectl, "secrets")


def test_of_an_object_that_was_held_back_only_the_last_is_told(
    kubectl: Kubectl, through: Kubectl, proxy: ApiProxy
) -> None:
    kubectl("create", "configmap", "one")
    with watching(through, proxy, "configmaps") as maps:
        proxy.hold_object("configmaps", "one")
        for colour in ("red", "blue", "green"):
            kubectl("label", "--overwrite", "configmap", "one", f"colour={colour}")
        kubectl("create", "configmap", "other")
        assert maps.line() == "configmap/other"
        assert proxy.kept_back("configmaps", "one")
        proxy.release_last("configmaps", "one")
        kubectl("create", "configmap", "third")
        assert [maps.line(), maps.line()] == ["configmap/one", "configmap/third"]
