from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from supervisor_operator.settings import Settings


def read(*argv: str, **environ: str) -> Settings:
    return Settings.from_args(argv, {f"SUPERVISOR_OPERATOR_{k}": v for k, v in environ.items()})


def refusal(capsys: pytest.CaptureFixture[str], *argv: str, **environ: str) -> str:
    """The one line that a wrong setting ends the process with."""
    with pytest.raises(SystemExit) as ended:
        read(*argv, **environ)
    out, err = capsys.readouterr()
    assert ended.value.code == 2
    assert out == ""
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err


def test_nothing_given_means_the_defaults() -> None:
    settings = read()
    assert settings == Settings(identity=settings.identity)
    assert settings.namespaces == ()
    assert settings.leader_elect is True
    assert settings.http_host == "127.0.0.1"


def test_two_processes_of_one_host_have_different_identities() -> None:
    assert read().identity != read().identity


EVERY_FLAG: list[tuple[str, str, Any]] = [
    ("--namespace", "team-a", ("team-a",)),
    ("--crd-wait-seconds", "0", 0.0),
    ("--relay-image", "registry.example/relay:1", "registry.example/relay:1"),
    ("--leader-elect", "false", False),
    ("--lease-namespace", "supervision", "supervision"),
    ("--lease-name", "other.lease", "other.lease"),
    ("--identity", "one", "one"),
    ("--lease-seconds", "20", 20),
    ("--renew-seconds", "2.5", 2.5),
    ("--retry-seconds", "0.5", 0.5),
    ("--workers", "3", 3),
    ("--resync-seconds", "5", 5.0),
    ("--sweep-seconds", "7.5", 7.5),
    ("--node-grace-seconds", "0", 0.0),
    ("--heartbeat-writes-per-second", "0", 0.0),
    ("--http-host", "0.0.0.0", "0.0.0.0"),  # noqa: S104 - nobody listens here
    ("--http-port", "0", 0),
    ("--log-format", "json", "json"),
    ("--log-level", "DEBUG", "debug"),
]


def test_the_table_below_has_every_setting() -> None:
    names = {field_of(flag) for flag, _, _ in EVERY_FLAG} | {"kubeconfig"}
    assert names == {field.name for field in dataclasses.fields(Settings)}


@pytest.mark.parametrize(("flag", "word", "value"), EVERY_FLAG)
def test_every_setting_is_a_flag_and_a_variable_and_the_flag_wins(
    flag: str, word: str, value: object
) -> None:
    variable = flag[2:].replace("-", "_").upper()
    assert getattr(read(flag, word), field_of(flag)) == value
    assert getattr(read(**{variable: word}), field_of(flag)) == value
    assert getattr(read(f"{flag}={word}", **{variable: "!"}), field_of(flag)) == value


def field_of(flag: str) -> str:
    return "namespaces" if flag == "--namespace" else flag[2:].replace("-", "_")


def test_namespaces_are_repeated_flags_or_commas_and_each_counts_once() -> None:
    wanted = ("team-a", "team-b")
    flags = ("--namespace", "team-a", "--namespace", "team-b", "--namespace", "team-a")
    assert read(*flags).namespaces == wanted
    assert read(NAMESPACE="team-a,team-b").namespaces == wanted


def test_kubeconfig_must_be_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config"
    assert str(path) in refusal(capsys, "--kubeconfig", str(path))
    path.touch()
    assert read("--kubeconfig", str(path)).kubeconfig == path


def test_empty_variable_counts_as_not_set() -> None:
    assert read(WORKERS="", NAMESPACE="").workers == 16


def test_variables_the_kubelet_makes_for_a_service_of_our_name_do_no_harm() -> None:
    assert read(SERVICE_HOST="10.0.0.1", PORT="tcp://10.0.0.1:80").http_port == 8080


@pytest.mark.parametrize(
    ("flag", "word", "allowed"),
    [
        ("--workers", "0", "a whole number from 1 to 1000"),
        ("--workers", "1.5", "a whole number from 1 to 1000"),
        ("--http-port", "65536", "a whole number from 0 to 65535"),
        ("--http-port", "tcp://10.0.0.1:80", "a whole number from 0 to 65535"),
        ("--lease-seconds", "0", "a whole number of seconds from 1 to 3600"),
        ("--resync-seconds", "soon", "a number of seconds from 0.1 to 86400"),
        ("--resync-seconds", "nan", "a number of seconds from 0.1 to 86400"),
        ("--sweep-seconds", "inf", "a number of seconds from 0.1 to 86400"),
        ("--node-grace-seconds", "-1", "a number of seconds from 0 to 86400"),
        ("--leader-elect", "maybe", "true or false"),
        ("--log-format", "xml", "text or json"),
        ("--log-level", "loud", "debug or info or warning or error"),
        ("--namespace", "Team_A", "names of namespaces"),
        ("--namespace", "a,,b", "names of namespaces"),
        ("--lease-namespace", "a.b", "the name of a namespace"),
        ("--lease-name", "-x", "an object's name"),
        ("--relay-image", "an image", "an image reference"),
    ],
)
def test_wrong_value_names_its_source_itself_and_what_is_allowed(
    flag: str, word: str, allowed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    variable = flag[2:].replace("-", "_").upper()
    for source, line in (
        (flag, refusal(capsys, f"{flag}={word}")),
        (f"SUPERVISOR_OPERATOR_{variable}", refusal(capsys, **{variable: word})),
    ):
        assert line.startswith(f"supervisor-operator: {source}: {word!r} is not allowed")
        assert allowed in line


def test_empty_flag_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--namespace: ''" in refusal(capsys, "--namespace=")


@pytest.mark.parametrize("argv", [["--worker=3"], ["--workers"], ["run"]])
def test_unknown_and_unfinished_flags_are_refused(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert argv[0] in refusal(capsys, *argv)


@pytest.mark.parametrize(
    ("argv", "culprit", "pair"),
    [
        (["--renew-seconds=15"], "--renew-seconds", "renew_seconds less than lease_seconds"),
        (["--lease-seconds=10"], "--lease-seconds", "renew_seconds less than lease_seconds"),
        (["--retry-seconds=10"], "--retry-seconds", "retry_seconds less than renew_seconds"),
        (["--renew-seconds=2"], "--renew-seconds", "retry_seconds less than renew_seconds"),
    ],
)
def test_lease_times_must_shrink(
    argv: list[str], culprit: str, pair: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refusal(capsys, *argv)
    assert culprit in line
    assert pair in line


def test_help_shows_every_flag_in_groups_and_how_variables_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        read("--help")
    text = capsys.readouterr().out
    assert ended.value.code == 0
    assert re.findall(r"^([a-z ]+):$", text, re.MULTILINE) == [
        "options",
        "cluster",
        "leader election",
        "work",
        "probes and metrics",
        "log",
    ]
    assert all(f"\n  {flag} " in text for flag, _, _ in EVERY_FLAG)
    assert "SUPERVISOR_OPERATOR_HTTP_PORT" in text
    assert "(default: 8080)" in " ".join(text.split())


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read("--version")
    assert ended.value.code == 0
    assert re.fullmatch(r"supervisor-operator \S+\n", capsys.readouterr().out)
