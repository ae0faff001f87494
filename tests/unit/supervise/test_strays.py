"""Whatever an agent started is gone when it is: nothing may trade beside its successor."""

import os
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

from tests.unit.supervise.harness import (
    ENVIRONMENT,
    PATIENCE,
    SUPERVISE,
    children,
    in_a_container,
    python,
    running,
    shell,
)

AS_PID_1 = (*in_a_container(), *SUPERVISE)
DEAF = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
def deaf(ready):
    with open(ready, "w") as file:
        file.write(f"{os.getpid()}\\n")
    while True:
        time.sleep(60)
def until(*names):
    while not all(os.path.exists(name) and os.path.getsize(name) for name in names):
        time.sleep(0.01)
"""
SAME_GROUP = DEAF + "os.fork() or deaf('one')\nuntil('one')\n"
NEW_SESSION = DEAF + "os.fork() or (os.setsid(), deaf('one'))\nuntil('one')\n"
FORKED_TWICE = (
    DEAF + "os.fork() or (os.setsid(), os.fork() and os._exit(0), deaf('one'))\nuntil('one')\n"
)
NEST = """
if not os.fork():
    os.setsid()
    if not os.fork():
        os.setsid()
        deaf("two")
    deaf("one")
until("one", "two")
"""
WAYS = {
    "same group": SAME_GROUP,
    "new session": NEW_SESSION,
    "forked twice": FORKED_TWICE,
    "sessions in sessions": DEAF + NEST,
}


def test_strays_of_a_silent_agent_are_gone(tmp_path: Path) -> None:
    silent = "open('heartbeat.json', 'w').close()\ntime.sleep(60)"
    with ExitStack() as stack:  # side by side, because each takes its time
        for run in [
            stack.enter_context(running(tmp_path / way, python(program + silent)))
            for way, program in WAYS.items()
        ]:
            assert run.code() == 1, run.folder.name
            assert run.events("stale")
            assert run.survivors() == []


def test_strays_of_a_crashed_agent_are_gone_before_the_restart(tmp_path: Path) -> None:
    restarted = "if os.path.exists('one'): sys.exit(0)\n"
    with ExitStack() as stack:
        for run in [
            stack.enter_context(
                running(
                    tmp_path / way,
                    python(program.replace(DEAF, DEAF + restarted) + "os._exit(1)"),
                    max_restarts=1,
                )
            )
            for way, program in WAYS.items()
        ]:
            assert run.code() == 0, run.folder.name
            names = " ".join(event["event"] for event in run.events())
            assert names == "started left-behind killing restarting started finished"
            assert run.survivors() == []


def test_strays_of_a_stopped_agent_are_gone(tmp_path: Path) -> None:
    with running(tmp_path, python(FORKED_TWICE + "deaf('ready')")) as run:
        run.until_file("ready")
        run.send(signal.SIGTERM)
        assert run.code() == 0
        assert run.survivors() == []


def test_an_agent_that_forks_to_the_background_has_ended(tmp_path: Path) -> None:
    program = DEAF + "os.fork() and (until('one'), os._exit(0))\nos.setsid()\ndeaf('one')"
    with running(tmp_path, python(program)) as run:
        assert run.code() == 0
        assert run.events("left-behind")
        assert run.survivors() == []


def test_a_polite_stray_ends_without_force(tmp_path: Path) -> None:
    with running(tmp_path, shell("setsid sleep 60 & sleep 0.1"), kill_after=15) as run:
        assert run.code() == 0
        assert run.events("left-behind")
        assert not run.events("killing")
        assert run.survivors() == []


def test_closing_standard_output_is_no_end(tmp_path: Path) -> None:
    program = "exec >&- 2>&-; for i in $(seq 14); do touch heartbeat.json; sleep 0.1; done; exit 3"
    with running(tmp_path, shell(program), timeout=1) as run:
        assert run.code() == 1
        assert not run.events("stale")
        assert "ended with exit code 3" in run.events("gave-up")[0]["message"]


def test_exiting_well_while_being_ended_is_still_a_failure(tmp_path: Path) -> None:
    program = "trap 'exit 0' TERM; touch heartbeat.json; while :; do sleep 0.02; done"
    with running(tmp_path, shell(program), kill_after=15) as run:
        assert run.code() == 1
        assert [event["event"] for event in run.events()] == ["started", "stale", "gave-up"]


def test_exiting_just_before_the_kill(tmp_path: Path) -> None:
    program = "trap 'sleep 0.2; exit 4' TERM; touch heartbeat.json; while :; do sleep 0.02; done"
    with running(tmp_path, shell(program), kill_after=0.2) as run:
        assert run.code() == 1
        last = run.events("gave-up")[0]["message"]
        assert last.startswith(("ended with exit code 4", "ended by SIGKILL"))
        assert run.survivors() == []


def test_an_agent_whose_first_thread_ended_is_killed(tmp_path: Path) -> None:
    leave_thread = {"x86_64": 60, "aarch64": 93}[os.uname().machine]  # the system call `exit`
    program = DEAF + (
        "import ctypes, threading\n"
        "threading.Thread(target=deaf, args=('one',)).start()\n"
        "until('one')\n"
        "open('heartbeat.json', 'w').close()\n"
        f"ctypes.CDLL(None).syscall({leave_thread}, 0)\n"
    )
    with running(tmp_path, python(program)) as run:
        assert run.code() == 1
        assert run.events("gave-up")
        assert run.survivors() == []


def test_processes_that_were_there_before_are_left_alone(tmp_path: Path) -> None:
    entry = 'sleep 60 & echo $! >sidecar; exec "$@"'
    with running(tmp_path, shell("exit 0"), supervise=("sh", "-c", entry, "sh", *SUPERVISE)) as run:
        assert run.code() == 0
        assert not run.events("left-behind")
        assert run.survivors() == [int(run.until_file("sidecar"))]


def test_as_pid_1_it_reaps_ends_strays_and_restarts(tmp_path: Path) -> None:
    program = FORKED_TWICE + "open('self', 'w').write(f'{os.getppid()}\\n'); sys.exit(1)"
    with running(tmp_path, python(program), supervise=AS_PID_1, max_restarts=1) as run:
        assert run.code() == 1
        assert run.until_file("self") == "1"
        assert len(run.events("left-behind")) == 2
        assert run.survivors() == []


def test_as_pid_1_it_ends_a_frozen_agent(tmp_path: Path) -> None:
    program = "import os, signal; open('heartbeat.json', 'w').close(); "
    program += "os.kill(os.getpid(), signal.SIGSTOP)"
    with running(tmp_path, python(program), supervise=AS_PID_1) as run:
        assert run.code() == 1
        assert run.events("stale")
        assert run.survivors() == []


def test_as_pid_1_it_stops_when_its_container_is_stopped(tmp_path: Path) -> None:
    with running(tmp_path, python(FORKED_TWICE + "deaf('ready')"), supervise=AS_PID_1) as run:
        run.until_file("ready")
        [first] = children(run.process.pid)  # supervise: unshare itself only waits for it
        os.kill(first, signal.SIGTERM)
        assert run.code() == 0
        assert run.events()[-1]["event"] == "stopped"
        assert run.survivors() == []


def test_standard_error_that_is_gone_ends_nothing(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [
                *SUPERVISE,
                "run",
                "--delay",
                "0",
                "--",
                "sh",
                "-c",
                "test -e ran || { echo >ran; exit 1; }",
            ],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stderr=writer,
            timeout=PATIENCE,
            check=False,
        )
    finally:
        os.close(writer)
    assert done.returncode == 0
