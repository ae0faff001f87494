"""Images as files, and what decides that one is made anew."""

import hashlib
import json
import shutil
import tarfile
from pathlib import Path

import pytest

from tests.cluster import debian, images, oci, places
from tests.cluster.errors import ClusterError
from tests.cluster.oci import File


def read(archive: Path, name: str) -> bytes:
    with tarfile.open(archive) as tar:
        found = tar.extractfile(name)
        assert found
        return found.read()


def blob(archive: Path, digest: str) -> bytes:
    content = read(archive, f"blobs/sha256/{digest.removeprefix('sha256:')}")
    assert f"sha256:{hashlib.sha256(content).hexdigest()}" == digest
    return content


def test_an_archive_leads_from_its_name_to_its_files(tmp_path: Path) -> None:
    layer = oci.write_layer(tmp_path / "layer.tar", {"/agents/agent.sh": File(b"exit", 0o755)})
    archive = tmp_path / "image.tar"
    oci.write_image(archive, "localhost/it:dev", [layer], {"User": "65532:65532"})
    (entry,) = json.loads(read(archive, "index.json"))["manifests"]
    assert entry["annotations"]["io.containerd.image.name"] == "localhost/it:dev"
    manifest = json.loads(blob(archive, entry["digest"]))
    config = json.loads(blob(archive, manifest["config"]["digest"]))
    assert config["config"] == {"User": "65532:65532"}
    assert config["rootfs"]["diff_ids"] == [oci.diff_id(layer)]
    assert blob(archive, manifest["layers"][0]["digest"]) == layer.read_bytes()


def test_the_same_files_give_the_same_layer(tmp_path: Path) -> None:
    files = {"/b": File(b"2"), "/a": File(b"1", 0o755)}
    one = oci.write_layer(tmp_path / "one.tar", files)
    other = oci.write_layer(tmp_path / "other.tar", dict(reversed(files.items())))
    assert one.read_bytes() == other.read_bytes()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("operator", "requirements"):
        shutil.copytree(places.CHECKOUT / name, tmp_path / name)
    for name in ("Dockerfile", "pyproject.toml"):
        shutil.copy(places.CHECKOUT / name, tmp_path)
    return tmp_path


def test_sources_decide_about_the_project_and_pins_about_the_wheels(checkout: Path) -> None:
    project, wheels = images._project_key(checkout), images._wheels_key(checkout)
    cache = checkout / "operator" / "supervise" / "__pycache__"
    cache.mkdir(exist_ok=True)
    (cache / "noise.pyc").touch()
    assert images._project_key(checkout) == project
    (checkout / "operator" / "supervise" / "new.py").touch()
    changed = images._project_key(checkout)
    assert changed != project
    assert images._wheels_key(checkout) == wheels
    for name in images.REQUIREMENTS:
        (checkout / name).write_text("")
    assert images._wheels_key(checkout) != wheels
    assert images._project_key(checkout) != changed


def test_the_sample_image_holds_agents_and_supervise(checkout: Path) -> None:
    agents = checkout / "manifests" / "agents"
    agents.mkdir(parents=True)
    for name in ("agent.py", "agent.sh", "agent.md"):
        (agents / name).write_text(name)
    files = images.sample_files(checkout)
    assert files["/agents/agent.py"] == File(b"agent.py", 0o755)
    assert files["/agents/agent.sh"] == File(b"agent.sh", 0o755)
    assert "/agents/agent.md" not in files
    assert "/usr/lib/python3/dist-packages/supervise/__main__.py" in files
    assert files["/usr/bin/supervise"].mode == 0o755


def test_the_oldest_versions_of_an_image_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    images.folder().mkdir(parents=True)
    for key in "abcde":
        images._kept("thing", key, Path.touch)
    assert sorted(path.name for path in images.folder().iterdir()) == [
        "thing-c.tar",
        "thing-d.tar",
        "thing-e.tar",
    ]


def test_an_image_that_fails_half_way_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(target: Path) -> None:
        target.touch()
        raise ClusterError("no")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    images.folder().mkdir(parents=True)
    with pytest.raises(ClusterError):
        images._kept("thing", "a", fail)
    assert list(images.folder().iterdir()) == []


def test_mirrors_are_those_of_the_machine_for_our_suite() -> None:
    listed = """\
http://mirror.test/debian/ trixie
http://mirror.test/debian/ trixie
http://mirror.test/debian/ trixie-backports
http://mirror.test/security/ trixie-security
http://elsewhere.test/ nodistro
"""
    assert debian.sources(listed, "trixie") == [
        "deb http://mirror.test/debian/ bookworm main",
        "deb http://mirror.test/security/ bookworm-security main",
    ]
    with pytest.raises(ClusterError, match="apt-get knows no Debian mirror"):
        debian.sources("http://elsewhere.test/ noble", "")
