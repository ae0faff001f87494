"""The Debian packages that a node and its images need, installed where that is possible.

What counts is the file, not the package: a containerd from elsewhere is as good. No service is
started by an installation, and nothing that is there is removed for it. Of packages whose one
program is all we want, only the files are unpacked into the cache: that needs no root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.cluster import places
from tests.cluster.errors import ClusterError

CNI = Path("/usr/lib/cni")
NEEDED = {
    "containerd": "containerd",
    "runc": "runc",
    "nft": "nftables",
    "ip": "iproute2",
    "buildah": "buildah",
    "mmdebstrap": "mmdebstrap",
    str(CNI / "bridge"): "containernetworking-plugins",
}
"""Program on PATH (or its full path) and the package that has it."""
UNPACKED = {"lua5.1": "lua5.1", "promtool": "prometheus"}
"""The same for programs that judge what we ship."""
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"


def need_packages() -> None:
    """Install what is missing, or say why this machine cannot have a node."""
    if not sys.platform.startswith("linux") or os.geteuid():
        raise ClusterError(
            "a real node needs root on Linux: become root, or `make cluster-up TIER=fake`"
        )
    missing = missing_packages()
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise ClusterError(f"tier node needs {', '.join(missing)}: install them, then try again")
    _install(missing)
    still = missing_packages()
    if still:
        raise ClusterError(f"{', '.join(still)}: installed, but the programs are not there")


def need_browser() -> str:
    """Where Chromium is; installed where that is possible."""
    if find("chromium") is None:
        if shutil.which("apt-get") is None or os.geteuid():
            raise ClusterError("chromium is needed: install it, then try again")
        _install(["chromium"])
    found = find("chromium")
    if found is None:
        raise ClusterError("chromium: installed, but the program is not there")
    return found


def missing_packages(needed: Iterable[str] = tuple(NEEDED)) -> list[str]:
    return sorted({NEEDED[program] for program in needed if find(program) is None})


def find(program: str) -> str | None:
    """Where a program is, also with a PATH that leaves out the folders of the administrator."""
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}")


def unpacked(program: str) -> str:
    """Where a program is that needs no installation; its package is fetched once."""
    package = UNPACKED[program]
    folder = places.cache() / "unpacked" / package
    path = folder / "usr/bin" / program
    if found := find(program):
        return found
    if not path.exists():
        with places.locked("unpack"):
            if not path.exists():
                _unpack(package, folder)
    return str(path)


def _unpack(package: str, folder: Path) -> None:
    if shutil.which("apt-get") is None:
        raise ClusterError(f"{package} is needed: install it, then try again")
    print(f"[packages] fetching {package}", file=sys.stderr, flush=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        try:
            _apt("download", package, folder=scratch)
        except ClusterError:
            _apt("update")
            _apt("download", package, folder=scratch)
        (archive,) = Path(scratch).glob("*.deb")
        files = Path(scratch) / "files"
        subprocess.run(["dpkg", "-x", str(archive), str(files)], check=True)
        files.rename(folder)


def _install(packages: list[str]) -> None:
    print(f"[packages] installing {' '.join(packages)}, about 20 s", file=sys.stderr, flush=True)
    _apt("update")
    _apt("install", "--yes", "--no-install-recommends", "--no-remove", *packages)


def _apt(*words: str, folder: str | None = None) -> None:
    # SYSTEMD_OFFLINE keeps the package's own script from starting a containerd for the machine.
    quiet = {"DEBIAN_FRONTEND": "noninteractive", "SYSTEMD_OFFLINE": "1"}
    command = ["apt-get", "--quiet", *words]
    done = subprocess.run(
        command, env=os.environ | quiet, cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise ClusterError(f"{' '.join(command)} failed: {lines[-1] if lines else 'no output'}")
