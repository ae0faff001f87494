"""Finds or builds the Kubernetes programs.

Each is compiled once from Go modules into the user's cache, keyed by the module files, so that
every later clone finds it. `KUBEBUILDER_ASSETS` goes first for programs that lie ready there.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import places
from tests.cluster.errors import ClusterError

MODULES = Path(__file__).parent / "programs"
KUBERNETES = MODULES / "kubernetes"
KWOK = MODULES / "kwok"
PAUSE = MODULES / "pause"
HELM = MODULES / "helm"
KUBE_LINTER = MODULES / "kube-linter"
VERSION = "v1.36.3"
GO_NEEDED = (1, 26)
DISK_NEEDED_GB = 7
SAY_EVERY = 5.0


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    package: str
    module: Path


def _kubernetes(name: str) -> Program:
    return Program(name, f"k8s.io/kubernetes/cmd/{name}", KUBERNETES)


PROGRAMS = {
    program.name: program
    for program in (
        _kubernetes("kube-apiserver"),
        _kubernetes("kube-controller-manager"),
        _kubernetes("kube-scheduler"),
        _kubernetes("kubectl"),
        _kubernetes("kubelet"),
        Program("etcd", "go.etcd.io/etcd/server/v3", KUBERNETES),
        Program("kwok", "sigs.k8s.io/kwok/cmd/kwok", KWOK),
        Program("pause", ".", PAUSE),
        Program("helm", "helm.sh/helm/v3/cmd/helm", HELM),
        Program("kube-linter", "golang.stackrox.io/kube-linter/cmd/kube-linter", KUBE_LINTER),
    )
}
CHECKERS = ("helm", "kube-linter")
"""Not run in any cluster: they render and judge manifests."""


def find_programs(names: Iterable[str]) -> dict[str, Path]:
    """Paths of the named programs; what is missing is built, with progress on stderr."""
    found = {name: _ready_made(name) or _cached(PROGRAMS[name]) for name in names}
    missing = [name for name, path in found.items() if not path.exists()]
    if missing:
        go = _go()
        _need_disk()
        with places.locked("build"):
            for number, name in enumerate(missing, 1):
                if not found[name].exists():
                    _build(go, PROGRAMS[name], found[name], f"{number}/{len(missing)}")
    return found


def _ready_made(name: str) -> Path | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    path = Path(assets) / name if assets else None
    return path if path and path.exists() else None


def _cached(program: Program) -> Path:
    return places.cache() / "programs" / f"{VERSION}-{_key(program.module)}" / program.name


def _key(module: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(module.iterdir()):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _go() -> str:
    wanted = ".".join(map(str, GO_NEEDED))
    advice = (
        f"install Go {wanted} or newer and put it on PATH, "
        "or point KUBEBUILDER_ASSETS at a folder with ready-made programs"
    )
    go = shutil.which("go")
    if go is None:
        raise ClusterError(f"no Go found, but the Kubernetes programs must be built: {advice}")
    said = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"go(\d+)\.(\d+)", said)
    if match is None or tuple(map(int, match.groups())) < GO_NEEDED:
        raise ClusterError(f"{go} is {said.strip() or 'unusable'}, too old: {advice}")
    return go


def _need_disk() -> None:
    folder = places.cache()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free / 2**30
    except OSError as error:
        raise ClusterError(f"cannot use the cache folder {folder}: {error.strerror}") from error
    if free < DISK_NEEDED_GB:
        raise ClusterError(
            f"{folder} has {free:.1f} GiB free, building needs {DISK_NEEDED_GB}: "
            "free some space or set XDG_CACHE_HOME to a larger disk"
        )


def _build(go: str, program: Program, target: Path, count: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(f".{os.getpid()}")
    log = target.with_suffix(".log")
    command = [go, "build", "-buildvcs=false", "-trimpath", "-mod=readonly", "-tags=grpcnotrace"]
    command += [f"-ldflags={_link_flags(program)}", "-o", str(draft), program.package]
    environment = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": ""}
    started = time.monotonic()
    with log.open("w") as output:
        child = subprocess.Popen(
            command, cwd=program.module, env=environment, stdout=output, stderr=output
        )
        _wait_aloud(child, f"[programs {count}] {program.name}", started)
    if child.returncode:
        draft.unlink(missing_ok=True)
        raise ClusterError(f"building {program.name} failed: {_last_line(log)} (all of it: {log})")
    draft.rename(target)


def _wait_aloud(child: subprocess.Popen[bytes], what: str, started: float) -> None:
    try:
        while True:
            try:
                child.wait(SAY_EVERY)
                break
            except subprocess.TimeoutExpired:
                _say(f"{what} is being built, {time.monotonic() - started:.0f} s so far")
    except BaseException:
        child.kill()
        raise
    if child.returncode == 0:
        _say(f"{what} built in {time.monotonic() - started:.0f} s")


def _link_flags(program: Program) -> str:
    if program.module != KUBERNETES:
        return "-s -w"
    major, minor, _ = VERSION.removeprefix("v").split(".")
    values = {"gitVersion": VERSION, "gitMajor": major, "gitMinor": minor}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    marks = [
        f"-X {package}.{name}={value}" for package in packages for name, value in values.items()
    ]
    return " ".join(["-s -w", *marks])


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no output"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
