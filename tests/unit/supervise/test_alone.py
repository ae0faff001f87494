"""The package stands alone, small and quick: an agent image takes it without anything else."""

import ast
import resource
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.supervise.harness import ENVIRONMENT, PACKAGES, memory, running, shell, until

SOURCES = sorted((PACKAGES / "supervise").rglob("*.py"))
MEBIBYTE = 1024  # in KiB
IMPORT_ALL = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    importlib.import_module(name)
foreign = {name.partition(".")[0] for name in sys.modules}
print(sorted(foreign - set(sys.stdlib_module_names) - {"__main__", "supervise"}))
"""


def imported(source: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." * node.level + (node.module or ""))
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_only_the_standard_library_is_imported(source: Path) -> None:
    assert imported(source) <= {*sys.stdlib_module_names, "supervise"}


def test_every_module_imports_without_site_packages() -> None:
    names = [f"supervise.{source.stem}" for source in SOURCES if source.stem != "__main__"]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", IMPORT_ALL, str(PACKAGES), *names],
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout == "[]\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=PACKAGES.parent / "packaging" / "supervise",
        capture_output=True,
        check=True,
    )
    [built] = folder.iterdir()
    with zipfile.ZipFile(built) as opened:
        yield opened


@pytest.fixture(scope="module")
def installed(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a machine that has the wheel, compiled as installers do, and no more."""
    folder = tmp_path_factory.mktemp("installed")
    wheel.extractall(folder)
    subprocess.run([sys.executable, "-m", "compileall", "-q", folder], check=True)
    return {**ENVIRONMENT, "PYTHONPATH": str(folder)}


def test_the_wheel_holds_supervise_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    whole = {f"supervise/{source.name}" for source in SOURCES} | {"supervise/py.typed"}
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == whole


def test_the_wheel_has_no_dependency(wheel: zipfile.ZipFile) -> None:
    [metadata] = [name for name in wheel.namelist() if name.endswith("/METADATA")]
    assert "Name: supervise\n" in wheel.read(metadata).decode()
    assert "Requires-Dist" not in wheel.read(metadata).decode()


def test_the_wheel_alone_runs_an_agent(installed: dict[str, str], tmp_path: Path) -> None:
    agent = shell(f"{sys.executable} -m supervise beat && cat heartbeat.json")
    with running(tmp_path, agent, environment=installed) as run:
        assert run.code() == 0
        assert "unix_ts" in run.said


@pytest.mark.parametrize(
    "words",
    [
        ("-m", "supervise", "run", "--quiet", "--", "true"),
        ("-m", "supervise", "beat"),
        ("-c", "from supervise import Heartbeat"),
    ],
    ids=["run", "beat", "Heartbeat"],
)
def test_it_starts_within_60_ms(
    installed: dict[str, str], tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Processor time of its whole life, interpreter and child included, the best of ten.

    On an idle machine that is the time it takes; on a busy one the clock would tell of the others.
    """

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    taken = []
    for _ in range(10):
        began = spent()
        subprocess.run([sys.executable, *words], cwd=tmp_path, env=installed, check=True)
        taken.append(spent() - began)
    assert 0 < min(taken) <= 0.060


def test_it_takes_at_most_16_mib(tmp_path: Path) -> None:
    beating = "while :; do echo '{\"unix_ts\": 1}' >heartbeat.json; sleep 0.05; done"
    with running(tmp_path, shell(beating), json=False) as run:
        until(lambda: "before the start" in run.told, "it has read JSON: all it needs is there")
        assert memory(run.process.pid) <= 16 * MEBIBYTE
