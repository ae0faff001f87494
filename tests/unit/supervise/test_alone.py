"""The package stands alone: an agent image takes it without anything else."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.unit.supervise.harness import PACKAGES

SOURCES = sorted((PACKAGES / "supervise").rglob("*.py"))
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


def test_the_small_wheel_has_no_dependency() -> None:
    project = tomllib.loads(
        (PACKAGES.parent / "packaging" / "supervise" / "pyproject.toml").read_text()
    )["project"]
    assert project["dependencies"] == []
    assert "optional-dependencies" not in project
