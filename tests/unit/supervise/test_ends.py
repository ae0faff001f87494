"""How a run ends and what supervise makes of it: restarts, exit codes, signals."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.unit.supervise.harness import BEAT, ENVIRONMENT, SUPERVISE, python, running, shell, until

BEATING = f"echo $$ >pid; while :; do touch {BEAT}; sleep 0.05; done"


def test_finishing_ends_with_0_after_one_run(tmp_path: Path) -> None:
    with running(tmp_path, shell("echo run >>runs"), max_restarts=3) as run:
        assert run.code() == 0
        assert (tmp_path / "runs").read_text() == "run\n"
        assert [event["event"] for event in run.events()] == ["started", "finished"]


def test_crashing_is_restarted_up_to_the_limit_and_ends_with_1(tmp_path: Path) -> None:
    with running(tmp_path, shell("echo run >>runs; exit 3"), max_restarts=2) as run:
        assert run.code() == 1
        assert (tmp_path / "runs").read_text() == "run\n" * 3
        assert [event["restart"] for event in run.events("restarting")] == [1, 2]
        assert [event["attempt"] for event in run.events("started")] == [1, 2, 3]
        assert run.events("gave-up")[0]["message"] == (
            "ended with exit code 3; gave up after restart 2 of 2"
        )


def test_without_restarts_no_restart_is_spoken_of(tmp_path: Path) -> None:
    with running(tmp_path, shell("exit 3"), json=False) as run:
        assert run.code() == 1
        assert run.told.splitlines()[1:] == [
            "supervise: ended with exit code 3; gave up at once: no restarts allowed"
        ]


def test_a_restart_that_finishes_ends_with_0(tmp_path: Path) -> None:
    with running(tmp_path, shell("test -e runs || { echo >runs; exit 1; }"), max_restarts=3) as run:
        assert run.code() == 0
        assert len(run.events("restarting")) == 1


def test_an_agent_killed_from_outside_is_restarted(tmp_path: Path) -> None:
    with running(
        tmp_path, shell("test -e runs || { echo >runs; kill -9 $$; }"), max_restarts=1
    ) as run:
        assert run.code() == 0
        assert "ended by SIGKILL" in run.events("restarting")[0]["message"]


def test_a_command_that_is_not_there_is_told_once(tmp_path: Path) -> None:
    with running(tmp_path, ["no-such-command"], max_restarts=3) as run:
        assert run.code() == 127
        assert [event["message"] for event in run.events()] == [
            "command not found: no-such-command"
        ]


def test_a_command_that_cannot_be_run_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "agent").touch(mode=0o644)
    with running(tmp_path, ["./agent"], max_restarts=3) as run:
        assert run.code() == 126
        assert [event["event"] for event in run.events()] == ["cannot-run"]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_signal_stops_the_agent_and_ends_with_0(tmp_path: Path, signum: int) -> None:
    with running(tmp_path, shell(BEATING), timeout=10, max_restarts=3) as run:
        run.until_file("pid")
        run.send(signum)
        assert run.code() == 0
        assert run.events()[-1]["event"] == "stopped"
        assert not run.events("restarting")
        assert run.survivors() == []


def test_the_agent_may_end_well_when_asked_to_stop(tmp_path: Path) -> None:
    farewell = "trap 'echo bye; exit 0' TERM; echo $$ >pid; while :; do sleep 0.05; done"
    with running(tmp_path, shell(farewell), kill_after=15) as run:
        run.until_file("pid")
        run.send(signal.SIGTERM)
        assert run.code() == 0
        assert run.said == "bye\n"
        assert not run.events("killing")


def test_a_second_stop_signal_does_not_wait(tmp_path: Path) -> None:
    deaf = "trap '' TERM; echo $$ >pid; while :; do sleep 0.05; done"
    with running(tmp_path, shell(deaf), kill_after=3600) as run:
        run.until_file("pid")
        run.send(signal.SIGTERM)
        run.until_event("stopping")
        run.send(signal.SIGTERM)
        assert run.code() == 0
        assert run.survivors() == []


def test_a_stop_signal_ends_the_wait_before_a_restart(tmp_path: Path) -> None:
    with running(tmp_path, shell("exit 1"), delay=3600, max_restarts=1) as run:
        run.until_event("restarting")
        run.send(signal.SIGTERM)
        assert run.code() == 0


def test_other_signals_are_the_agents(tmp_path: Path) -> None:
    program = "trap 'echo got >usr1; exit 0' USR1; echo $$ >pid; while :; do sleep 0.05; done"
    with running(tmp_path, shell(program)) as run:
        run.until_file("pid")
        run.send(signal.SIGUSR1)
        assert run.until_file("usr1") == "got"
        assert run.code() == 0


def test_arguments_pass_unchanged_even_a_second_dash_dash(tmp_path: Path) -> None:
    given = ["--json", "--", "two words", ""]
    with running(tmp_path, python("import sys; print(sys.argv[1:])", *given)) as run:
        assert run.code() == 0
        assert run.said == f"{given}\n"


def test_input_passes_to_the_agent_and_its_output_is_not_mixed_with_ours() -> None:
    done = subprocess.run(
        [*SUPERVISE, "run", "--", "cat"],
        env=ENVIRONMENT,
        input=b"hello\n",
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"hello\n"
    assert done.stderr.startswith(b"supervise: started pid ")


def test_the_agent_starts_as_a_shell_would_start_it(tmp_path: Path) -> None:
    show = (
        'ps -o pid=,pgid=,sid= $$; echo "$GIVEN"; ls /proc/self/fd; grep SigIgn /proc/self/status'
    )
    with running(tmp_path, shell(show), environment={"GIVEN": "passed on"}) as run:
        assert run.code() == 0
        ids, given, *descriptors, ignored = run.said.splitlines()
    assert len(set(ids.split())) == 1, "it leads a group and a session of its own"
    assert given == "passed on"
    assert descriptors == ["0", "1", "2", "3"], "the last is that of ls itself"
    mask = int(ignored.split()[1], 16)
    assert not mask & 1 << signal.SIGPIPE - 1, "Python's own choice is not passed on"


def test_the_pid_file_is_there_while_supervise_runs(tmp_path: Path) -> None:
    with running(tmp_path, shell(BEATING), timeout=10, pid_file="here.pid") as run:
        run.until_file("pid")
        assert (tmp_path / "here.pid").read_text() == f"{run.process.pid}\n"
        run.send(signal.SIGTERM)
        assert run.code() == 0
        assert not (tmp_path / "here.pid").exists()


def test_a_pid_file_that_cannot_be_written_starts_nothing(tmp_path: Path) -> None:
    with running(tmp_path, shell("echo run >>runs"), pid_file="no/such/folder") as run:
        assert run.code() == 2
        assert "cannot write the pid file" in run.told
        assert not (tmp_path / "runs").exists()


def test_pythonpath_comes_first(tmp_path: Path) -> None:
    show = shell('echo "$PYTHONPATH"')
    with running(tmp_path, show, pythonpath="lib") as run:
        assert run.code() == 0
        assert run.said.split(os.pathsep)[0] == str(tmp_path / "lib")


def test_src_is_on_the_pythonpath_where_there_is_one(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "bot.py").write_text("print('imported')")
    with running(tmp_path, python("import bot")) as run:
        assert run.code() == 0
        assert run.said == "imported\n"


def test_the_agent_is_told_where_and_how_often_to_beat(tmp_path: Path) -> None:
    show = shell('echo "$SUPERVISION_HEARTBEAT_FILE $SUPERVISION_INTERVAL_SECONDS"')
    with running(tmp_path, show, timeout=30) as run:
        assert run.code() == 0
        assert run.said == f"{tmp_path / BEAT} 7.5\n"


def test_quiet_says_only_why_supervise_fails(tmp_path: Path) -> None:
    with running(tmp_path, shell("exit 1"), quiet=True, max_restarts=1) as run:
        assert run.code() == 1
        assert [event["event"] for event in run.events()] == ["gave-up"]


def test_quiet_and_successful_says_nothing(tmp_path: Path) -> None:
    with running(tmp_path, shell("exit 0"), quiet=True) as run:
        assert run.code() == 0
        assert run.told == ""


def test_json_lines_carry_time_event_and_message(tmp_path: Path) -> None:
    with running(tmp_path, shell("exit 1"), max_restarts=1) as run:
        assert run.code() == 1
        names = [event["event"] for event in run.events()]
        assert names == ["started", "restarting", "started", "gave-up"]
        for event in run.events():
            assert event["unix_ts"] > 0
            assert event["message"]


def test_nothing_is_left_unreaped_while_the_agent_runs(tmp_path: Path) -> None:
    orphans = "for i in 1 2 3; do (sleep 0.01 & echo $! >>orphans); done; "
    with running(tmp_path, shell(orphans + BEATING), timeout=10) as run:
        run.until_file("pid")
        pids = (tmp_path / "orphans").read_text().split()
        assert len(pids) == 3
        until(lambda: not any(Path("/proc", pid).exists() for pid in pids), "orphans are reaped")
        assert run.process.poll() is None


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "supervise run [options] -- command [argument ...]"),
        (["dance"], "supervise run [options] -- command [argument ...]"),
        (["run"], "no command"),
        (["run", "--nonsense", "--", "true"], "unknown option --nonsense"),
        (["run", "--timeout"], "--timeout needs a value"),
        (["run", "--timeout", "--json", "--", "true"], "--timeout needs a value"),
        (["run", "--json=yes", "--", "true"], "--json takes no value"),
        (["beat", "--", "true"], "a beat runs no command"),
        (["relay", "--", "true"], "the relay runs no command"),
        (["run", "--timeout", "0", "--", "true"], "must be more than zero seconds"),
        (["run", "--delay", "nan", "--", "true"], "must be zero or more seconds"),
        (["run", "--delay", "soon", "--", "true"], "must be zero or more seconds, not soon"),
        (["run", "--max-restarts", "-1", "--", "true"], "must be zero or more"),
        (["run", "--max-restarts", "some", "--", "true"], "must be zero or more, not some"),
    ],
)
def test_wrong_options_are_refused(words: list[str], complaint: str) -> None:
    done = subprocess.run(
        [*SUPERVISE, *words], env=ENVIRONMENT, capture_output=True, check=False, text=True
    )
    assert done.returncode == 2
    assert complaint in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["beat", "-h"], ["relay", "-h"]])
def test_help_goes_to_standard_output(words: list[str]) -> None:
    done = subprocess.run(
        [*SUPERVISE, *words], env=ENVIRONMENT, capture_output=True, check=True, text=True
    )
    assert f"supervise {words[0] if words[1:] else 'run'} [options]" in done.stdout
    assert done.stderr == ""


def test_an_option_may_carry_its_value_behind_a_sign(tmp_path: Path) -> None:
    words = ["beat", "--heartbeat-file=a=b.json", "--metrics=x=1"]
    subprocess.run([*SUPERVISE, *words], cwd=tmp_path, env=ENVIRONMENT, check=True)
    assert '"metrics": {"x": 1}' in (tmp_path / "a=b.json").read_text()
