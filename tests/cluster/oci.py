"""Images as files: an OCI archive written from plain layers, and the layers of one read back.

Layers are not compressed: they are read once, on the machine that wrote them.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OCI = "application/vnd.oci.image"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class File:
    content: bytes
    mode: int = 0o644


def write_layer(path: Path, files: Mapping[str, File]) -> Path:
    """A layer of a few files by their path in the image; the same files give the same bytes."""
    with tarfile.open(path, "w") as tar:
        for name, file in sorted(files.items()):
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.size, entry.mode = len(file.content), file.mode
            tar.addfile(entry, io.BytesIO(file.content))
    return path


def write_image(path: Path, name: str, layers: Iterable[Path], settings: dict[str, Any]) -> None:
    """An archive that `ctr images import` and `buildah pull oci-archive:` both take."""
    blobs = {_digest(layer): layer for layer in layers}
    config = _json(
        {
            "os": "linux",
            "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
            "config": settings,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in blobs]},
            # buildah counts these against the layers.
            "history": [{"created_by": name} for _ in blobs],
        }
    )
    layer_type = f"{OCI}.layer.v1.tar"
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{OCI}.manifest.v1+json",
            "config": _descriptor(config, f"{OCI}.config.v1+json"),
            "layers": [
                {"mediaType": layer_type, "digest": f"sha256:{digest}", "size": _size(layer)}
                for digest, layer in blobs.items()
            ],
        }
    )
    names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    entry = _descriptor(manifest, f"{OCI}.manifest.v1+json") | {"annotations": names}
    with tarfile.open(path, "w") as tar:
        _add(tar, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        for digest, layer in blobs.items():
            tar.add(layer, f"blobs/sha256/{digest}", filter=_plain)
        for blob in (config, manifest):
            _add(tar, f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}", blob)
        _add(tar, "index.json", _json({"schemaVersion": 2, "manifests": [entry]}))


def layers_of(archive: Path) -> dict[str, int]:
    """Size in bytes of each layer of a docker archive, lowest first, by the layer's own hash."""
    with tarfile.open(archive) as tar:
        manifest = json.loads(_member(tar, "manifest.json"))[0]
        config = json.loads(_member(tar, manifest["Config"]))
        sizes = [tar.getmember(name).size for name in manifest["Layers"]]
    return dict(zip(config["rootfs"]["diff_ids"], sizes, strict=True))


def diff_id(layer: Path) -> str:
    return f"sha256:{_digest(layer)}"


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    found = tar.extractfile(name)
    assert found is not None, f"{name} is not a file"
    return found.read()


def _descriptor(blob: bytes, kind: str) -> dict[str, Any]:
    digest = hashlib.sha256(blob).hexdigest()
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(blob)}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode()


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
