"""The root file system of the base image: a few Debian packages, unpacked and nothing more.

No package script runs, so there is no /etc/passwd and no bundle of certificates: images name their
user by number, and pods bring the cluster's own certificate.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cluster.errors import ClusterError
from tests.cluster.packages import find

SUITE = "bookworm"
PYTHON = "3.11"
"""The suite's Python; wheels are chosen for it."""
PACKAGES = (
    "python3",
    "python3-venv",
    "python3-pip-whl",
    "python3-setuptools-whl",
    "dash",
    "coreutils",
    "libc-bin",
    "base-files",
    "base-passwd",
    "ca-certificates",
)
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
OPTIONS = (
    "--quiet",
    "--variant=extract",
    "--mode=root",
    f"--include={','.join(PACKAGES)}",
    *(f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT),
    # A package script would make this link, and every shell script may count on it.
    '--extract-hook=ln -s mawk "$1/usr/bin/awk"',
)


def recipe() -> str:
    """All that decides the result, except the mirror's own state."""
    return " ".join((SUITE, *OPTIONS))


def write_root(target: Path) -> None:
    command = [find("mmdebstrap") or "mmdebstrap", *OPTIONS, SUITE, str(target), *_sources()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise ClusterError(f"mmdebstrap failed: {lines[-1] if lines else 'no output'}")


def _sources() -> list[str]:
    """The mirrors this machine itself uses, asked for our suite."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format=$(REPO_URI) $(RELEASE)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return sources(listed, _own_suite())


def sources(listed: str, own: str) -> list[str]:
    """Lines of a sources.list for our suite, from those of the machine's own suite."""
    entries = dict.fromkeys(tuple(line.split()) for line in listed.splitlines())
    found = [
        f"deb {uri} {SUITE}{release.removeprefix(own)} main"
        for uri, release in entries
        if release in (own, f"{own}-security", f"{own}-updates")
    ]
    if not found:
        raise ClusterError(
            f"apt-get knows no Debian mirror ({own or 'this system'}): the base image needs one"
        )
    return found


def _own_suite() -> str:
    lines = Path("/etc/os-release").read_text().splitlines()
    values = dict(line.split("=", 1) for line in lines if "=" in line)
    return values.get("VERSION_CODENAME", "") if values.get("ID") == "debian" else ""
