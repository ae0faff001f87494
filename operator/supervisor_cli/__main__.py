"""The words of the command line, and who answers them."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from typing_extensions import override

from supervisor_operator.core.steer import Order
from supervisor_operator.errors import ClusterError
from supervisor_operator.settings import version

PROGRAM = "kubectl supervisor"
FAILED, UNKNOWN, INTERRUPTED = 1, 2, 130
COMMON = {
    "namespace": None,
    "all_namespaces": False,
    "selector": "",
    "context": None,
    "kubeconfig": None,
    "output": None,
}
ENDS = "Ends with 0 if all are HEALTHY, 1 if one is not, 2 if nobody can tell."
EXAMPLES = """\
examples:
  kubectl supervisor top -A                      what is wrong, anywhere
  kubectl supervisor status trader -n shop       why, and what to do now
  kubectl supervisor logs trader --previous      last words of the run before
  kubectl supervisor restart -l desk=equities    all of a desk, outside the budget
  kubectl supervisor status -o json -l app=x     for scripts; see also the exit code
"""
ORDERS = {
    Order.START: "run agents that are stopped or paused",
    Order.STOP: "end the pods of agents",
    Order.PAUSE: "let agents run, but judge and restart nothing",
    Order.RESUME: "judge agents again",
    Order.RESTART: "replace the pods of agents, outside the restart budget",
}


def main(argv: Sequence[str] | None = None) -> int:
    options = read_options(argv)
    try:
        run = import_module(f"supervisor_cli.commands.{options.module}").run
        code: int = asyncio.run(run(options))
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return UNKNOWN if options.module == "status" else FAILED
    except KeyboardInterrupt:
        return 0 if options.module in {"page", "watch"} else INTERRUPTED
    except BrokenPipeError:
        # Whoever read this has enough; the interpreter would complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"error: {error.strerror}: {error.filename}", file=sys.stderr)
        return FAILED
    return code


def read_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """Flags that all commands know may stand before the command too, as with kubectl."""
    parser = _parser()
    options = argparse.Namespace(**COMMON | vars(parser.parse_args(argv)))
    if options.namespace and options.all_namespaces:
        parser.error("-n and -A do not go together")
    if options.selector and options.names:
        parser.error("give names or -l, not both")
    return options


class _Parser(argparse.ArgumentParser):
    @override
    def error(self, message: str) -> NoReturn:
        self.exit(UNKNOWN, f"error: {message}\nSee {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM,
        description="See and steer supervised agents. Needs no more than your kubeconfig.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[_common()],
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {version()}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    common, formats = _common(), ("json", "yaml", "wide")

    def add(name: str, text: str, more: str = "", module: str = "") -> argparse.ArgumentParser:
        words = f"{text[0].upper()}{text[1:]}. {more}"
        one = commands.add_parser(name, help=text, description=words, parents=[common])
        one.set_defaults(module=module or name, command=name)
        return one

    for one in (
        add("status", "how agents are, why, and what to do now", ENDS),
        add("top", "all agents, the worst first"),
        add("tree", "who is above whom, teams included"),
        add("watch", "agents as they change", "Goes on until Ctrl-C. A line for each change."),
    ):
        one.add_argument("names", nargs="*", metavar="NAME", help="only these")
        one.add_argument("-o", "--output", choices=formats, help="another format")
    _add_logs(add("logs", "what an agent said"))
    for order, text in ORDERS.items():
        one = add(str(order), text, "Asked twice is asked once.", "steer")
        one.add_argument("names", nargs="*", metavar="NAME", help="these, or those of -l")
    _add_page(add("page", "the live page in your browser, signed in as you"))
    report = add("report", "one archive for a bug report, without secrets")
    report.add_argument("names", nargs="*", metavar="NAME", help="only these")
    report.add_argument("--file", help="where to write it (default: a name with the time)")
    report.add_argument("--no-logs", action="store_true", help="leave the agents' logs out")
    return parser


def _add_logs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs=1, metavar="NAME", help="the agent")
    parser.add_argument(
        "--previous", action="store_true", help="of the run before, as far as its pod is kept"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on as it speaks")
    parser.add_argument("-c", "--container", help="another container of the pod, as relay")
    parser.add_argument("--tail", type=int, metavar="LINES", help="only the last lines")


def _add_page(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Without -n it shows all namespaces. Ctrl-C ends it, and the page's rights."
    parser.add_argument("--server", help="address of the API (default: through a port-forward)")
    parser.add_argument("--account", help="with tokens of this ServiceAccount of -n, not your own")
    parser.add_argument("--no-browser", action="store_true", help="only print a link")


def _common() -> _Parser:
    """Without defaults: a command's own would take the place of what was said before it."""
    parser = _Parser(add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("-n", "--namespace", help="namespace (default: that of the context)")
    scope.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces")
    parser.add_argument("-l", "--selector", help="only those with these labels")
    parser.add_argument("--context", help="context of the kubeconfig")
    parser.add_argument("--kubeconfig", help="file to use in place of $KUBECONFIG")
    return parser


if __name__ == "__main__":
    sys.exit(main())
