"""The command line: `supervise run`, `supervise beat` and `supervise relay`."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from supervise import words as by
from supervise.contract import DEFAULT_FILE, FILE_VARIABLE
from supervise.words import HELP, Option, WrongUse

WRONG_USE = 2
RUN = (
    Option("heartbeat-file", DEFAULT_FILE, by.text, "FILE", f"default: {DEFAULT_FILE}"),
    Option("timeout", 30.0, by.interval, "SECONDS", "silence after which the agent is ended"),
    Option("check-interval", 2.0, by.interval, "SECONDS", "time between two looks at the file"),
    Option("startup-seconds", None, by.seconds, "SECONDS", "time to the first beat (the timeout)"),
    Option("max-busy-seconds", 0.0, by.seconds, "SECONDS", "how far a busy beat extends it"),
    Option("max-restarts", 3, by.count, "N", "so at most N + 1 runs (default: 3)"),
    Option("delay", 5.0, by.seconds, "SECONDS", "time before a restart"),
    Option("kill-after", 5.0, by.seconds, "SECONDS", "time from SIGTERM to SIGKILL"),
    Option("pythonpath", None, by.text, "PATH", "put before PYTHONPATH (src, if there)"),
    Option("pid-file", None, by.text, "FILE", "holds the pid of supervise while it runs"),
    Option("json", False, None, help="one JSON object per event"),
    Option("quiet", False, None, help="say only why supervise itself fails"),
)
BEAT = (
    Option("heartbeat-file", "", by.text, "FILE", f"default: ${FILE_VARIABLE}, or {DEFAULT_FILE}"),
    Option("metrics", (), by.metric, "KEY=VALUE", "figures to show", many=True),
    Option("busy-seconds", 0.0, by.seconds, "SECONDS", "no beat for so long"),
)
RELAY = (Option("json", False, None, help="one JSON object per event"),)


class Command(NamedTuple):
    usage: str
    options: tuple[Option, ...]
    do: Callable[[dict[str, Any], tuple[str, ...]], int]
    help: str


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = COMMANDS.get(words[0]) if words else None
    if command is None:
        return _no_command(words)
    # Split here, because everything behind the first "--" is the agent's, a second "--" included.
    cut = words.index("--") if "--" in words else len(words)
    own, agent = words[1:cut], tuple(words[cut + 1 :])
    if set(own) & set(HELP):
        print(by.explain(command.usage, command.options))
        return 0
    try:
        return command.do(by.parse(command.options, own), agent)
    except WrongUse as why:
        print(f"usage: {command.usage}\nsupervise: {why}", file=sys.stderr)
        return WRONG_USE


def _no_command(words: list[str]) -> int:
    lines = [f"  {command.usage}\n      {command.help}" for command in COMMANDS.values()]
    usage = "\n".join(["Keep an agent alive, not just running.", *lines])
    if words and words[0] in HELP:
        print(usage)
        return 0
    print(usage, file=sys.stderr)
    return WRONG_USE


def _run(values: dict[str, Any], agent: tuple[str, ...]) -> int:
    if not agent:
        raise WrongUse("no command: put it behind --, as in `supervise run -- python -m bot`")
    from supervise.machine import this_machine  # noqa: PLC0415 - a beat must not pay for them
    from supervise.run import Options, Runner  # noqa: PLC0415
    from supervise.telling import Teller  # noqa: PLC0415
    from supervise.watch import Limits  # noqa: PLC0415

    timeout, startup = values["timeout"], values["startup-seconds"]
    options = Options(
        command=agent,
        heartbeat_file=values["heartbeat-file"],
        limits=Limits(
            timeout,
            timeout if startup is None else startup,
            values["check-interval"],
            values["max-busy-seconds"],
        ),
        max_restarts=values["max-restarts"],
        delay=values["delay"],
        kill_after=values["kill-after"],
        pythonpath=values["pythonpath"],
    )
    teller = Teller(as_json=values["json"], quiet=values["quiet"])
    with _pid_file(values["pid-file"]):
        return Runner(options, this_machine(), teller).run()


def _beat(values: dict[str, Any], agent: tuple[str, ...]) -> int:
    if agent:
        raise WrongUse(f"unexpected {agent[0]}: a beat runs no command")
    from supervise import beatfile  # noqa: PLC0415 - each command pays for itself only

    path = values["heartbeat-file"] or beatfile.default_file()
    try:
        beatfile.write(path, dict(values["metrics"]), values["busy-seconds"])
    except ValueError as error:
        raise WrongUse(str(error)) from error
    except OSError as error:
        print(f"supervise: cannot write {path}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _relay(values: dict[str, Any], agent: tuple[str, ...]) -> int:
    if agent:
        raise WrongUse(f"unexpected {agent[0]}: the relay runs no command")
    from supervise.pod import this_pod  # noqa: PLC0415 - the same
    from supervise.relay import Relay  # noqa: PLC0415
    from supervise.telling import Teller  # noqa: PLC0415
    from supervise.uplink import Uplink  # noqa: PLC0415

    pod = this_pod(os.environ)
    Relay(pod, Uplink(pod), Teller(as_json=values["json"], quiet=False)).run()
    return 0


@contextmanager
def _pid_file(path: str | None) -> Iterator[None]:
    if path is None:
        yield
        return
    try:
        with open(path, "w", encoding="ascii") as opened:
            opened.write(f"{os.getpid()}\n")
    except OSError as error:
        raise WrongUse(f"cannot write the pid file: {error}") from error
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(path)


COMMANDS = {
    "run": Command(
        "supervise run [options] -- command [argument ...]",
        RUN,
        _run,
        "run a command, restart it when it hangs or crashes",
    ),
    "beat": Command("supervise beat [options]", BEAT, _beat, "write one beat"),
    "relay": Command(
        "supervise relay [options]",
        RELAY,
        _relay,
        "in a pod: carry the beats of the agent to its Heartbeat",
    ),
}

if __name__ == "__main__":
    sys.exit(main())
