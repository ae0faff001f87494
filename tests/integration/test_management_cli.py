"""`kubectl supervisor` as a process on a real API server, with the rights of a kubeconfig."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from supervisor_operator.core.states import State
from tests.cluster.local import Cluster
from tests.cluster.places import CHECKOUT
from tests.support.builders import a_supervisor, a_team
from tests.support.health_stories import STORIES, told
from tests.support.kubectl import Kubectl
from tests.support.management import (
    Caller,
    allow_in_namespace,
    api_kubeconfig,
    install_api,
    make_account,
    serving,
    until,
    write_kubeconfig,
)
from tests.support.operator import OperatorProcess

COMMAND = (sys.executable, "-m", "supervisor_cli")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(CHECKOUT / "operator")}


@dataclass(frozen=True, slots=True)
class Plugin:
    cluster: Cluster
    namespace: str

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=ENVIRONMENT,
        )

    def command(self, *words: str) -> list[str]:
        scope = () if "-A" in words else ("-n", self.namespace)
        return [*COMMAND, *words, f"--kubeconfig={self.cluster.kubeconfig}", *scope]

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "-o", "json").stdout)


@pytest.fixture
def plugin(kubectl: Kubectl) -> Plugin:
    return Plugin(kubectl.cluster, kubectl.namespace)


def put(kubectl: Kubectl, name: str, state: State, **spec: Any) -> None:
    """A Supervisor whose status is that of a story, as the operator would have written it."""
    kubectl.create(a_supervisor(name, **spec))
    status = told(STORIES[state]()).item["status"] | {"observedGeneration": 1}
    patch = json.dumps({"status": status})
    kubectl("patch", "sup", name, "--subresource=status", "--type=merge", "-p", patch)


def test_status_says_why_and_what_now_and_ends_for_scripts(
    kubectl: Kubectl, plugin: Plugin
) -> None:
    put(kubectl, "well", State.RUNNING)
    put(kubectl, "ill", State.FAILED)
    kubectl.create(a_supervisor("new"))
    well, ill, new = (plugin("status", name) for name in ("well", "ill", "new"))
    assert [one.returncode for one in (well, ill, new)] == [0, 1, 2], (well, ill, new)
    assert "HEALTHY  HeartbeatFresh" in well.stdout
    assert "exit code 3 (Error)" in ill.stdout
    assert f"$ kubectl -n {kubectl.namespace} patch sup ill" in ill.stdout
    assert "\x1b[" not in ill.stdout, "no colours where nobody sees them"
    everyone = plugin("status")
    assert everyone.returncode == 1
    names = [line.split()[0] for line in everyone.stdout.splitlines()]
    assert names == ["NAME", "ill", "new", "well"]
    missing = plugin("status", "nobody")
    assert (missing.returncode, "not found" in missing.stderr) == (2, True)


def test_formats_and_selection(kubectl: Kubectl, plugin: Plugin) -> None:
    put(kubectl, "well", State.RUNNING)
    put(kubectl, "ill", State.FAILED)
    kubectl("label", "sup", "ill", "desk=one")
    assert plugin.json("status", "ill")["level"] == "UNHEALTHY"
    assert [one["name"] for one in plugin.json("top", "-l", "desk=one")] == ["ill"]
    assert yaml.safe_load(plugin("top", "-o", "yaml").stdout)[0]["name"] == "ill"
    top = plugin("top", "-A", "-o", "wide").stdout.splitlines()
    assert top[0].endswith("HEALTHY")
    assert top[1].split()[:2] == ["NAMESPACE", "NAME"]
    assert any(kubectl.namespace in line and "last" not in line for line in top[2:])


def test_tree_shows_parents_and_teams(kubectl: Kubectl, plugin: Plugin) -> None:
    put(kubectl, "boss", State.RUNNING)
    put(kubectl, "kid", State.BACK_OFF, parentRef={"name": "boss"})
    kubectl.create(a_team("crew", supervisorRef={"name": "boss"}, objective="win"))
    lines = plugin("tree").stdout.splitlines()
    assert lines[0].startswith("boss  HEALTHY")
    assert lines[1].startswith("├─ team crew  UNKNOWN")
    assert lines[1].endswith(": win")
    assert lines[2].startswith("└─ kid  DEGRADED  SPAWNING, BackOff")
    (root,) = plugin.json("tree")
    assert [one["name"] for one in root["below"]] == ["crew", "kid"]


def test_watch_shows_each_change_once_and_ends_well(kubectl: Kubectl, plugin: Plugin) -> None:
    put(kubectl, "well", State.RUNNING)
    with subprocess.Popen(
        plugin.command("watch"), stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().split()[0] == "NAME"
        assert process.stdout.readline().split()[:2] == ["well", "HEALTHY"]
        status = told(STORIES[State.PAUSED]()).item["status"] | {"observedGeneration": 1}
        patch = json.dumps({"status": status})
        kubectl("patch", "sup", "well", "--subresource=status", "--type=merge", "-p", patch)
        assert process.stdout.readline().split()[:4] == ["well", "HEALTHY", "PAUSED", "Paused"]
        kubectl("delete", "sup", "well")
        assert process.stdout.readline() == "well is gone\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_orders_are_changes_of_spec_and_asked_twice_is_asked_once(
    kubectl: Kubectl, plugin: Plugin
) -> None:
    put(kubectl, "well", State.RUNNING)
    for order, mode in (("pause", "Paused"), ("stop", "Stopped"), ("start", "Running")):
        assert plugin(order, "well").returncode == 0
        assert kubectl.get("sup", "well")["spec"]["operatingMode"] == mode
    for end in ("restart asked for\n", "restart asked for already\n"):
        assert plugin("restart", "well").stdout.endswith(end)
        found = kubectl.get("sup", "well")
        assert found["spec"]["restartRequest"] == "restart of run 1"
    known = kubectl("get", "sup", "well", "-o", "json", "--show-managed-fields").json
    managers = {one["manager"] for one in known["metadata"]["managedFields"]}
    assert "kubectl-supervisor" in managers
    nameless = plugin("stop")
    assert (nameless.returncode, "or choose them with -l" in nameless.stderr) == (2, True)


def test_a_report_holds_what_is_needed_and_no_secret(
    kubectl: Kubectl, plugin: Plugin, tmp_path: Path
) -> None:
    secret = "hunter2"  # noqa: S105 - what must not be seen again
    agent = {"image": "localhost/agent:1", "env": [{"name": "KEY", "value": secret}]}
    put(kubectl, "ill", State.FAILED, agent=agent, config={"key": secret})
    path = tmp_path / "report.tar.gz"
    path.touch(mode=0o644)
    done = plugin("report", f"--file={path}")
    assert done.returncode == 0, done.stderr
    assert path.stat().st_mode & 0o777 == 0o600
    nowhere = plugin("report", f"--file={tmp_path / 'no' / 'folder'}")
    assert (nowhere.returncode, nowhere.stderr.startswith("error: No such file")) == (1, True)
    with tarfile.open(path) as tar:
        found = {
            member.name.removeprefix("supervisor-report/"): tar.extractfile(member)
            for member in tar.getmembers()
        }
        texts = {name: file.read().decode() for name, file in found.items() if file}
    assert {"about.json", "supervisors.json", "health.json", "pods.json"} <= texts.keys()
    assert not any(secret in text for text in texts.values())
    assert json.loads(texts["health.json"])[0]["level"] == "UNHEALTHY"
    assert json.loads(texts["supervisors.json"])[0]["spec"]["agent"]["env"][0]["name"] == "KEY"


def test_what_the_kubeconfig_may_not_do_is_refused_in_the_api_servers_words(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    access = write_kubeconfig(
        kubectl.cluster, make_account(kubectl, "nobody"), tmp_path / "nobody.kubeconfig"
    )
    command = [*COMMAND, "top", f"--kubeconfig={access}", "-n", kubectl.namespace]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=ENVIRONMENT
    )
    assert done.returncode == 1
    assert "cannot list resource" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_operator_obeys_what_plugin_and_api_order(
    fake_kubectl: Kubectl, operator: OperatorProcess, tmp_path: Path
) -> None:
    """On pods that run: paused by one, resumed by the other, restarted outside the budget."""
    assert operator.pid
    kubectl, cluster = fake_kubectl, fake_kubectl.cluster
    plugin = Plugin(cluster, kubectl.namespace)
    kubectl.create(a_supervisor("hello", heartbeat={"source": "None"}))
    kubectl.wait_status("hello", phase="ACTIVE")
    assert plugin("status", "hello").returncode == 0
    token = make_account(kubectl, "steerer")
    allow_in_namespace(kubectl, "steerer")
    install_api(cluster)
    with serving(api_kubeconfig(cluster, tmp_path), tmp_path) as api:
        caller = Caller(api.port, token)
        here = f"/api/v1/namespaces/{kubectl.namespace}/supervisors/hello"
        with caller.stream(f"/api/v1/events?namespace={kubectl.namespace}") as stream:
            assert plugin("pause", "hello").returncode == 0
            paused = stream.until("SupervisorStateChanged")["data"]["supervisor"]
            assert (paused["name"], paused["phase"]) == ("hello", "PAUSED")
            assert caller.ask("POST", f"{here}/resume").status == 200
            active = stream.until("SupervisorConnected")["data"]["supervisor"]
            assert active["phase"] == "ACTIVE"
        assert caller.ask("POST", f"{here}/restart").json["spec"]["restartRequest"]
        kubectl.wait_status("hello", podName="hello-r2", phase="ACTIVE")
        until(lambda: caller.get(f"{here}/health").json.get("pod") == "hello-r2")
        health = caller.get(f"{here}/health").json
        assert (health["level"], health["restarts"]["used"]) == ("HEALTHY", 0)
        words = plugin.json("status", "hello")
        for key in ("level", "reason", "cause", "nextStep", "commands"):
            assert words[key] == health[key]
