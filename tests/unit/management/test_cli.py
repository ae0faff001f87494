"""The plugin without a cluster: its words, its order, its tree, its exit codes, its discretion."""

from __future__ import annotations

import argparse
import json
from typing import Any

import pytest
import yaml

from supervisor_api.keeping import keep_supervisor
from supervisor_cli.__main__ import read_options
from supervisor_cli.commands.logs import pod_of
from supervisor_cli.commands.status import code_of
from supervisor_cli.commands.tree import Node, draw, grow
from supervisor_cli.commands.watch import Screen
from supervisor_cli.look import report
from supervisor_cli.redact import GONE, redact, redact_text
from supervisor_cli.show import content_of, is_seen, paint, paragraph, table, worst_first
from supervisor_operator.core.health.assess import assess
from supervisor_operator.core.health.report import HealthReport, Level
from supervisor_operator.core.health.subject import Subject
from supervisor_operator.core.states import State
from supervisor_operator.errors import NotFoundError
from tests.support.health_stories import STORIES, all_stories, told
from tests.unit.management.test_health import GOLDEN


def answer(state: State) -> HealthReport:
    story = told(STORIES[state]())
    return report(story.item, {}, story.now)


@pytest.mark.parametrize("name", list(all_stories()))
def test_plugin_and_api_say_the_words_of_the_golden_file(name: str) -> None:
    story, golden = told(all_stories()[name]()), json.loads((GOLDEN / f"{name}.json").read_text())
    plugin = report(story.item, {}, story.now)
    api = assess(Subject.of(keep_supervisor(story.item).item), story.now)
    assert content_of(plugin) == content_of(api) == golden
    text = paragraph(plugin, colour=False)
    for word in (golden["cause"], golden["nextStep"], *golden["commands"]):
        assert word in text


def test_exit_codes_are_for_scripts() -> None:
    healthy, failed, starting = (
        answer(state) for state in (State.RUNNING, State.FAILED, State.STARTING)
    )
    assert code_of([healthy]) == 0
    assert code_of([healthy, starting]) == 2
    assert code_of([healthy, starting, failed]) == 1
    assert code_of([answer(State.BACK_OFF)]) == 1


def test_the_worst_comes_first() -> None:
    states = [State.RUNNING, State.STARTING, State.BACK_OFF, State.FAILED]
    levels = [one.level for one in worst_first(answer(state) for state in states)]
    assert levels == [Level.UNHEALTHY, Level.DEGRADED, Level.UNKNOWN, Level.HEALTHY]


def test_columns_stand_below_each_other_and_colours_are_for_terminals() -> None:
    assert table(["A", "B"], [["long", "x"], ["s", "y"]]) == ["A      B", "long   x", "s      y"]
    assert paint(Level.HEALTHY, "x", colour=False) == "x"
    assert paint(Level.HEALTHY, "x", colour=True) == "\x1b[32mx\x1b[0m"


@pytest.mark.parametrize(
    ("terminal", "no_color", "seen"),
    [(True, None, True), (True, "1", False), (False, None, False), (True, "", True)],
)
def test_colours_are_where_a_person_looks_and_wants_them(
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,  # noqa: FBT001 - a column of the table
    no_color: str | None,
    seen: bool,  # noqa: FBT001 - likewise
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    assert is_seen() is seen


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_watch_in_other_formats_is_a_document_per_change(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = Screen((), form, namespaces=False)
    running, paused = (told(STORIES[one]()).item for one in (State.RUNNING, State.PAUSED))
    for kind, item in (("ADDED", running), ("MODIFIED", running), ("MODIFIED", paused)):
        screen.take(kind, item)
    screen.take("DELETED", paused)
    said = capsys.readouterr().out
    read = [json.loads(line) for line in said.splitlines()] if form == "json" else None
    first, second, gone = read or list(yaml.safe_load_all(said))
    assert (first["reason"], second["reason"]) == ("HeartbeatFresh", "Paused")
    assert gone == {"namespace": "default", "name": "hello", "gone": True}


def node(name: str, above: str | None = None) -> Node:
    key = ("Supervisor", "shop", above) if above else None
    return Node("Supervisor", "shop", name, Level.HEALTHY, "ACTIVE", key)


def test_the_tree_shows_who_is_above_whom() -> None:
    nodes = [node("c", "b"), node("b", "a"), node("a"), node("d", "a"), node("lost", "nobody")]
    lines = [line for root in grow(nodes) for line in draw(root, namespaces=False, colour=False)]
    assert [line.removesuffix("  HEALTHY  ACTIVE") for line in lines] == [
        "a",
        "├─ b",
        "│  └─ c",
        "└─ d",
        "lost",
    ]


def test_a_circle_is_shown_once_and_ends() -> None:
    nodes = [node("a", "b"), node("b", "a"), node("below", "a")]
    roots = grow(nodes)
    names = {
        line.split("  ")[0] for root in roots for line in draw(root, namespaces=False, colour=False)
    }
    assert {name.strip("├└─ ") for name in names} == {"a", "b", "below"}


def test_logs_are_those_of_the_newest_run_or_the_one_before() -> None:
    item: dict[str, Any] = {"metadata": {"name": "a"}, "status": {"run": 3, "podName": "a-r3"}}
    assert pod_of(item, previous=False) == "a-r3"
    assert pod_of(item, previous=True) == "a-r2"
    item["status"] = {"run": 1, "lastTermination": {"podName": "a-r1"}}
    assert pod_of(item, previous=False) == "a-r1"
    with pytest.raises(NotFoundError, match="no run before"):
        pod_of(item, previous=True)


SECRET = "hunter2"  # noqa: S105 - what must not be seen again


@pytest.mark.parametrize(
    "found",
    [
        {"env": [{"name": "PLAIN", "value": SECRET}]},
        {"config": {"anything": [SECRET, {"deep": SECRET}]}},
        {"password": SECRET},
        {"args": ["--api-key", SECRET]},
        {"args": [f"--token={SECRET}"]},
        {"message": f"login failed: password={SECRET}, retrying"},
        {"message": f"GET https://user:{SECRET}@host/path"},
        {"message": f"Authorization: Bearer {SECRET}"},
        {"message": f'{{"client_secret": "{SECRET}"}}'},
        {"metadata": {"annotations": {"supervision.dev/config": SECRET}}},
        {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": SECRET}},
        {"metadata": {"managedFields": [{"manager": SECRET}]}},
        {"message": f'{{"password": "two words {SECRET}"}}'},
        {"message": f"password: 'it is \\' {SECRET}'"},
        {"command": ["sh", "-c", f"agent --db-password {SECRET} --fast"]},
        {"message": f"https://{SECRET}@host/path"},
        {"message": f"redis://:{SECRET}@host:6379/0"},
        {"message": f"Authorization: Basic {SECRET}"},
        {"message": f"Cookie: session={SECRET}; theme=dark"},
        {"message": f"x-api-key: {SECRET}"},
        {"message": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----"},
        {"message": f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n(cut)"},
        {"message": f"key sk-{SECRET}{SECRET}{SECRET} was refused"},
        {"message": f"clone with ghp_{SECRET}{SECRET}{SECRET}"},
    ],
)
def test_secrets_do_not_leave(found: dict[str, Any]) -> None:
    assert SECRET not in json.dumps(redact(found))


def test_names_shapes_and_plain_words_stay() -> None:
    found = {
        "env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        "volumes": [{"secret": {"secretName": "certs"}}],
        "config": {"depth": 3},
        "message": "exit code 3 after 2 tokens per second",
    }
    shown = redact(found)
    assert shown["env"] == found["env"]
    assert shown["volumes"] == found["volumes"]
    assert shown["config"] == {"depth": GONE}
    assert shown["message"] == found["message"]
    plain = "asked https://host/a?b=c, ping@host.example, task-sk-1 done, 3 tokens: ok"
    assert redact_text(plain).startswith("asked https://host/a?b=c, ping@host.example, task-sk-1")
    assert redact_text("eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.abc") == GONE


@pytest.mark.parametrize(
    "words",
    [
        "status a b -n shop -o wide --context c --kubeconfig f",
        "top -A -l x=y -o json",
        "tree -o yaml",
        "watch a",
        "logs a --previous -f -c agent --tail 5",
        "restart a",
        "report --file x.tar.gz --no-logs",
    ],
)
def test_the_command_line_reads_as_kubectls(words: str) -> None:
    assert isinstance(read_options(words.split()), argparse.Namespace)


def test_flags_may_stand_before_the_command_as_with_kubectl() -> None:
    found = read_options(["-n", "shop", "--context", "c", "status", "a", "-o", "wide"])
    assert (found.namespace, found.context, found.names) == ("shop", "c", ["a"])
    assert read_options(["-n", "shop", "top", "-n", "desk"]).namespace == "desk", (
        "the last one counts"
    )


@pytest.mark.parametrize(
    "words",
    ["", "fly", "status -n a -A", "-n a status -A", "stop a -l x=y", "top -o xml", "logs a b"],
)
def test_what_it_cannot_read_ends_with_2_and_a_hint(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        read_options(words.split())
    assert ended.value.code == 2
    assert "--help" in capsys.readouterr().err
