import operator
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_operator_folder_is_no_package_and_the_standard_library_is_found() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert str(operator.__file__).startswith(sysconfig.get_path("stdlib"))


def test_top_level_holds_what_newcomers_look_for() -> None:
    wanted = "operator crds manifests tests docs Dockerfile pyproject.toml Makefile README.md"
    wanted += " CONTRIBUTING.md CHANGELOG.md AGENTS.md LICENSE .ci/run"
    assert [name for name in wanted.split() if not (ROOT / name).exists()] == []


def test_requirements_are_hashed_and_name_no_index() -> None:
    for name in ("runtime.txt", "api.txt", "dev.txt"):
        text = (ROOT / "requirements" / name).read_text()
        pins = [line for line in text.splitlines() if "==" in line]
        assert len(pins) > 10
        assert all(line.endswith("\\") for line in pins), "each pin is followed by its hashes"
        assert "://" not in text
        assert "index" not in text
