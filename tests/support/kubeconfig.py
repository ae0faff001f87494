"""Reads how to reach an API server, and writes how to reach a plain one on loopback."""

from __future__ import annotations

import base64
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class Access:
    """An API server and the credentials of whoever the kubeconfig is for."""

    server: str
    context: ssl.SSLContext
    token: str | None


def read_kubeconfig(path: Path, folder: Path) -> Access:
    """The current context; certificates given as data become files in the folder."""
    config = yaml.safe_load(path.read_text())
    current = _named(config, "context", config["current-context"])
    cluster = _named(config, "cluster", current["cluster"])
    user = _named(config, "user", current["user"])
    context = ssl.create_default_context(cafile=_file(cluster, "certificate-authority", folder))
    certificate = _file(user, "client-certificate", folder)
    if certificate:
        context.load_cert_chain(certificate, _file(user, "client-key", folder))
    return Access(cluster["server"].rstrip("/"), context, user.get("token"))


def write_plain_kubeconfig(path: Path, server: str) -> Path:
    """For a server that asks for no credentials."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "proxy",
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        "clusters": [{"name": "proxy", "cluster": {"server": server}}],
        "users": [{"name": "proxy", "user": {}}],
    }
    path.write_text(json.dumps(config, indent=1))
    return path


def _named(config: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        entry[kind] for entry in config[f"{kind}s"] if entry["name"] == name
    )
    return found


def _file(entry: dict[str, Any], key: str, folder: Path) -> str | None:
    if data := entry.get(f"{key}-data"):
        path = folder / key
        path.touch(mode=0o600)
        path.write_bytes(base64.b64decode(data))
        return str(path)
    return entry.get(key)
