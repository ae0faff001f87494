"""The images of tier node, made on this machine and kept in the user's cache.

Each file is named by a hash of what it is made from, so a change of the sources makes one small
layer anew and nothing else. No registry is asked; wheels and packages come from where this machine
gets its own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.cluster import debian, oci, places
from tests.cluster.errors import ClusterError
from tests.cluster.node import PAUSE_IMAGE
from tests.cluster.oci import File
from tests.cluster.packages import find

BASE = "localhost/python-base:dev"
PROJECT = "localhost/supervisor-operator:dev"
SAMPLE_AGENT = "localhost/sample-agent:dev"
USER = "65532:65532"
KEPT_VERSIONS = 3
LOCK = "images/build"
PACKAGES = ("supervise", "supervisor_operator", "supervisor_api", "supervisor_cli")
REQUIREMENTS = ("requirements/runtime.txt", "requirements/api.txt")
SCRIPT = b"#!/usr/bin/python3\nfrom supervise.__main__ import main\n\nraise SystemExit(main())\n"


def build(pause: Path) -> list[Path]:
    """Archives of all images, the missing ones made now, with progress on stderr."""
    folder().mkdir(parents=True, exist_ok=True)
    with places.locked(LOCK):
        return [_pause(pause), project(), sample_agent()]


def folder() -> Path:
    return places.cache() / "images"


def base_layer() -> Path:
    """The root file system that every image but pause stands on."""
    return _kept("base", _base_key(), debian.write_root)


def project(checkout: Path = places.CHECKOUT) -> Path:
    """The project's own image, from its Dockerfile."""
    key = _project_key(checkout)
    return _kept("supervisor-operator", key, lambda target: _write_project(checkout, target))


def sample_agent(checkout: Path = places.CHECKOUT) -> Path:
    """The base, the sample agents in /agents, and `supervise`."""
    files = sample_files(checkout)

    def write(target: Path) -> None:
        settings = {"User": USER, "Cmd": ["/agents/agent.py", "beat"]}
        _write_with_layer(target, SAMPLE_AGENT, [base_layer()], files, settings)

    return _kept("sample-agent", _key(_base_key(), repr(sorted(files.items()))), write)


def sample_files(checkout: Path) -> dict[str, File]:
    operator = checkout / "operator"
    agents = {
        f"/agents/{path.name}": File(path.read_bytes(), 0o755)
        for path in (checkout / "manifests" / "agents").glob("agent.*")
        if path.suffix in (".py", ".sh")
    }
    package = {
        f"/usr/lib/python3/dist-packages/{path.relative_to(operator)}": File(path.read_bytes())
        for path in _sources(operator / "supervise")
    }
    return agents | package | {"/usr/bin/supervise": File(SCRIPT, 0o755)}


def bytes_beyond_base(archive: Path) -> int:
    """How much the project's image adds to the base, unpacked as it lies in a node."""
    base = oci.diff_id(base_layer())
    return sum(size for layer, size in oci.layers_of(archive).items() if layer != base)


def _pause(program: Path) -> Path:
    files = {"/pause": File(program.read_bytes(), 0o755)}

    def write(target: Path) -> None:
        _write_with_layer(target, PAUSE_IMAGE, [], files, {"Entrypoint": ["/pause"]})

    return _kept("pause", _key(repr(files)), write)


def _write_with_layer(
    target: Path, name: str, below: list[Path], files: dict[str, File], settings: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory(dir=folder()) as scratch:
        layer = oci.write_layer(Path(scratch) / "layer.tar", files)
        oci.write_image(target, name, [*below, layer], settings)


def _write_project(checkout: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder()) as scratch:
        context = Path(scratch)
        shutil.copytree(_dependency_wheels(checkout), context / "wheels" / "dependencies")
        _pip(
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            f"--wheel-dir={context / 'wheels' / 'project'}",
            str(checkout),
        )
        _buildah(
            "bud",
            "--layers",
            "--force-rm",
            "--isolation=chroot",
            "--network=host",
            "--pull-never",
            f"--build-arg=BASE_IMAGE={_base_in_storage()}",
            f"--file={checkout / 'Dockerfile'}",
            f"--tag={PROJECT}",
            str(context),
        )
    _buildah("push", PROJECT, f"docker-archive:{target}:{PROJECT}")


def _dependency_wheels(checkout: Path) -> Path:
    """Those of the requirements, checked by their hashes, for the base's Python."""

    def write(target: Path) -> None:
        _pip(
            "download",
            "--no-deps",
            "--require-hashes",
            "--only-binary=:all:",
            f"--python-version={debian.PYTHON}",
            *(f"--requirement={checkout / name}" for name in REQUIREMENTS),
            f"--dest={target}",
        )

    return _kept("wheels", _wheels_key(checkout), write, suffix="")


def _base_in_storage() -> str:
    if not _buildah("images", "--quiet", "--filter", f"reference={BASE}"):
        with tempfile.TemporaryDirectory(dir=folder()) as scratch:
            archive = Path(scratch) / "base.tar"
            oci.write_image(archive, BASE, [base_layer()], {})
            _buildah("pull", f"oci-archive:{archive}")
    return BASE


def _buildah(*words: str) -> str:
    # A storage per base: what was built on another one is of no use any more.
    storage = folder() / f"storage-{_base_key()}"
    for old in folder().glob("storage-*"):
        if old != storage:
            shutil.rmtree(old)
    # In mounts of its own: a build that is killed leaves none behind.
    own = ["unshare", "--mount", find("buildah") or "buildah"]
    own += [f"--root={storage}", f"--runroot={storage}/run", "--storage-driver=overlay"]
    return _run([*own, *words])


def _pip(*words: str) -> None:
    _run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise ClusterError(f"{' '.join(command)}: {lines[-1] if lines else 'no output'}")
    return done.stdout.strip()


def _kept(name: str, key: str, write: Callable[[Path], None], suffix: str = ".tar") -> Path:
    """The file of this name and key; made if it is not there, and then the oldest goes."""
    path = folder() / f"{name}-{key}{suffix}"
    if path.exists():
        os.utime(path)
        return path
    print(f"[images] making {name}", file=sys.stderr, flush=True)
    started = time.monotonic()
    draft = path.with_name(f"draft-{os.getpid()}-{path.name}")
    try:
        write(draft)
        draft.rename(path)
    finally:
        _remove(draft)
    for old in _by_age(folder().glob(f"{name}-*{suffix}"))[:-KEPT_VERSIONS]:
        _remove(old)
    took = time.monotonic() - started
    print(f"[images] {name} made in {took:.1f} s", file=sys.stderr, flush=True)
    return path


def _by_age(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: (path.stat().st_mtime_ns, path.name))


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _base_key() -> str:
    return _key(debian.recipe())


def _wheels_key(checkout: Path) -> str:
    return _key(debian.PYTHON, *((checkout / name).read_bytes() for name in REQUIREMENTS))


def _project_key(checkout: Path) -> str:
    packages = [checkout / "operator" / name for name in PACKAGES]
    sources = [path for package in packages for path in _sources(package)]
    files = [checkout / "Dockerfile", checkout / "pyproject.toml", *sources]
    named = [(str(path.relative_to(checkout)), path.read_bytes()) for path in files]
    return _key(_base_key(), _wheels_key(checkout), repr(named))


def _sources(package: Path) -> list[Path]:
    return sorted(
        path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )


def _key(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(content)} ".encode() + content)
    return digest.hexdigest()[:12]
