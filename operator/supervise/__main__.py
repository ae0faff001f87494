"""The command line: `supervise run` and `supervise beat`."""

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from supervise import beatfile
from supervise.beatfile import DEFAULT_FILE, FILE_VARIABLE, Metric

Refuse = Callable[[str], NoReturn]


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Split here, because everything behind the first "--" is the agent's, a second "--" included.
    cut = words.index("--") if "--" in words else len(words)
    parser = _parser()
    options = parser.parse_args(words[:cut])
    options.command = tuple(words[cut + 1 :])
    return int(options.do(options, parser.error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="supervise", description="Keep an agent alive, not just running.", allow_abbrev=False
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    _add_run(commands.add_parser("run", help="run a command, restart it when it hangs or crashes"))
    _add_beat(commands.add_parser("beat", help="write one beat"))
    return parser


def _add_run(run: argparse.ArgumentParser) -> None:
    run.usage = "supervise run [options] -- command [argument ...]"
    add = run.add_argument
    add("--heartbeat-file", type=Path, default=Path(DEFAULT_FILE), metavar="FILE")
    for name, default, text in (
        ("timeout", 30.0, "silence after which the agent is ended"),
        ("check-interval", 2.0, "time between two looks at the file"),
    ):
        add(f"--{name}", type=_interval, default=default, metavar="SECONDS", help=text)
    for name, limit, text in (
        ("startup-seconds", None, "time to the first beat (default: the timeout)"),
        ("max-busy-seconds", 0.0, "how far busy_seconds of a beat may extend the timeout"),
        ("delay", 5.0, "time before a restart"),
        ("kill-after", 5.0, "time from SIGTERM to SIGKILL"),
    ):
        add(f"--{name}", type=_seconds, default=limit, metavar="SECONDS", help=text)
    add("--max-restarts", type=_count, default=3, metavar="N", help="so at most N + 1 runs")
    add("--pythonpath", metavar="PATH", help="put before PYTHONPATH (default: src, if there)")
    add("--pid-file", type=Path, metavar="FILE", help="holds the pid of supervise while it runs")
    add("--json", action="store_true", help="one JSON object per event")
    add("--quiet", action="store_true", help="say only why supervise itself fails")
    run.set_defaults(do=_run)


def _add_beat(beat: argparse.ArgumentParser) -> None:
    add = beat.add_argument
    where = f"default: ${FILE_VARIABLE}, or {DEFAULT_FILE}"
    add("--heartbeat-file", type=Path, metavar="FILE", help=where)
    add("--metrics", type=_metric, nargs="+", action="extend", default=[], metavar="KEY=VALUE")
    add("--busy-seconds", type=_seconds, default=0.0, metavar="SECONDS", help="no beat for so long")
    beat.set_defaults(do=_beat)


def _run(options: argparse.Namespace, refuse: Refuse) -> int:
    if not options.command:
        refuse("no command: put it behind --, as in `supervise run -- python -m bot`")
    from supervise.machine import this_machine  # noqa: PLC0415 - a beat must not pay for them
    from supervise.run import Options, Runner  # noqa: PLC0415
    from supervise.telling import Teller  # noqa: PLC0415
    from supervise.watch import Limits  # noqa: PLC0415

    startup = options.timeout if options.startup_seconds is None else options.startup_seconds
    runner = Runner(
        Options(
            command=options.command,
            heartbeat_file=options.heartbeat_file,
            limits=Limits(
                options.timeout, startup, options.check_interval, options.max_busy_seconds
            ),
            max_restarts=options.max_restarts,
            delay=options.delay,
            kill_after=options.kill_after,
            pythonpath=options.pythonpath,
        ),
        this_machine(),
        Teller(as_json=options.json, quiet=options.quiet),
    )
    with _pid_file(options.pid_file, refuse):
        return runner.run()


def _beat(options: argparse.Namespace, refuse: Refuse) -> int:
    path = options.heartbeat_file or beatfile.default_file()
    try:
        beatfile.write(path, dict(options.metrics), options.busy_seconds)
    except ValueError as error:
        refuse(str(error))
    except OSError as error:
        print(f"supervise: cannot write {path}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def _pid_file(path: Path | None, refuse: Refuse) -> Iterator[None]:
    if path is None:
        yield
        return
    try:
        path.write_text(f"{os.getpid()}\n", encoding="ascii")
    except OSError as error:
        refuse(f"cannot write the pid file: {error}")
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()


def _seconds(word: str) -> float:
    with suppress(ValueError):
        seconds = float(word)
        if 0 <= seconds < math.inf:
            return seconds
    raise argparse.ArgumentTypeError(f"must be zero or more seconds, not {word}")


def _interval(word: str) -> float:
    if seconds := _seconds(word):
        return seconds
    raise argparse.ArgumentTypeError("must be more than zero seconds")


def _count(word: str) -> int:
    with suppress(ValueError):
        count = int(word)
        if count >= 0:
            return count
    raise argparse.ArgumentTypeError(f"must be zero or more, not {word}")


def _metric(word: str) -> tuple[str, Metric]:
    key, equals, value = word.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, not {word}")
    for kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            continue
        return key, number if math.isfinite(number) else value
    return key, value


if __name__ == "__main__":
    sys.exit(main())
