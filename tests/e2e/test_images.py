"""The project's image: small, and quick to make anew."""

import shutil
from pathlib import Path

import pytest

from tests.cluster import images, oci, places
from tests.cluster.local import Cluster

MEGABYTE = 1_000_000


@pytest.fixture
def checkout(node: Cluster, tmp_path: Path) -> Path:
    """What the image is made from, to be changed at will."""
    assert node.way == "local", "these images are made for the local way"
    for name in ("operator", "requirements"):
        shutil.copytree(places.CHECKOUT / name, tmp_path / name)
    for name in ("Dockerfile", "pyproject.toml", "README.md"):
        shutil.copy(places.CHECKOUT / name, tmp_path)
    return tmp_path


def test_the_project_adds_little_to_its_base(checkout: Path) -> None:
    with places.locked(images.LOCK):
        added = images.bytes_beyond_base(images.project(checkout))
    print(f"the project image adds {added / MEGABYTE:.0f} MB to its base")
    assert added <= 150 * MEGABYTE


def test_a_change_of_the_sources_makes_one_small_layer_anew(checkout: Path) -> None:
    with places.locked(images.LOCK):
        before = images.project(checkout)
        assert images.project(checkout) == before
        (checkout / "operator" / "supervisor_operator" / "new.py").write_text("NEW = True\n")
        after = images.project(checkout)
    *lower, project = oci.layers_of(before).items()
    *same, changed = oci.layers_of(after).items()
    after.unlink()
    assert same == lower
    assert changed != project
    assert changed[1] < 5 * MEGABYTE
