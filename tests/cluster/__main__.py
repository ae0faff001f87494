"""`python -m tests.cluster COMMAND`: the cluster of this checkout."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict

from tests.cluster import images, local, packages, places, ways
from tests.cluster.errors import ClusterError, UsageError
from tests.cluster.programs import CHECKERS, find_programs
from tests.cluster.tiers import TIERS, programs_of


def up(tier: str, *, audit: bool, node_count: int) -> None:
    programs_of(tier)
    running = local.running(places.kept_cluster())
    if running and running.tier != tier:
        raise ClusterError(
            f"a cluster of tier {running.tier} is up: run `make cluster-down` before TIER={tier}"
        )
    if running:
        print(f"cluster of tier {tier} is already up: {running.kubeconfig}", file=sys.stderr)
        return
    started = time.monotonic()
    folder = places.kept_cluster()
    local.stop(folder)
    cluster = ways.open_way(folder, tier, kept=True, audit=audit, node_count=node_count)
    if cluster.way != "local":
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cluster.json").write_text(json.dumps(asdict(cluster)))
    took = time.monotonic() - started
    print(f"cluster of tier {tier} is up after {took:.1f} s", file=sys.stderr)
    print('next: export KUBECONFIG="$(make -s kubeconfig)"  ·  make cluster-down', file=sys.stderr)


def down() -> None:
    folder = places.kept_cluster()
    cluster = local.load(folder)
    if cluster:
        ways.close(cluster)
    local.stop(folder)
    print("cluster is down" if cluster else "no cluster was up", file=sys.stderr)


def build() -> None:
    """Get what every tier needs now, so that no test pays for it with its time limit."""
    if ways.choose_way() == "local":
        needed = {name for tier in TIERS.values() for name in tier}
        paths = find_programs([*sorted(needed), *CHECKERS])
        for program in packages.UNPACKED:
            packages.unpacked(program)
        packages.need_packages()
        packages.need_browser()
        images.build(paths["pause"])


def clean() -> None:
    gone = local.clear_all()
    print(f"{len(gone)} cluster folders cleared", file=sys.stderr)


def _needed() -> local.Cluster:
    cluster = local.running(places.kept_cluster())
    if cluster is None:
        raise ClusterError("no cluster is up: run `make cluster-up` first")
    return cluster


def main(argv: list[str] | None = None) -> int:
    options, rest = _parser().parse_known_args(argv)
    try:
        match options.command:
            case "up":
                up(options.tier, audit=options.audit, node_count=options.nodes)
            case "down":
                down()
            case "build":
                build()
            case "clean":
                clean()
            case "kubeconfig":
                print(_needed().kubeconfig)
            case "kubectl-path":
                running = local.running(places.kept_cluster())
                print(running.kubectl if running else find_programs(["kubectl"])["kubectl"])
            case _:
                cluster = _needed()
                command = [cluster.kubectl, f"--kubeconfig={cluster.kubeconfig}", *rest]
                return subprocess.run(command, check=False).returncode
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up_parser = commands.add_parser("up", help="start the cluster of this checkout")
    up_parser.add_argument("--tier", default="control", help=f"one of {', '.join(TIERS)}")
    up_parser.add_argument("--audit", action="store_true", help="write an API audit log")
    up_parser.add_argument("--nodes", type=int, default=1, help="how many, for tier node")
    commands.add_parser("build", help="make programs and images that are not there yet")
    commands.add_parser("down", help="take it down")
    commands.add_parser("clean", help="take down every cluster of this user")
    commands.add_parser("kubeconfig", help="print the path of the admin kubeconfig")
    commands.add_parser("kubectl-path", help="print the path of a kubectl that fits")
    commands.add_parser("kubectl", help="run kubectl on the cluster")
    return parser


if __name__ == "__main__":
    sys.exit(main())
