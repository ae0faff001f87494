"""The manifests as each way to install renders them, object by object."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.programs import find_programs
from tests.support.install import MANIFESTS, NAMESPACE

OVERLAYS = MANIFESTS / "overlays"
CHART = MANIFESTS / "chart"
RELEASE = "supervision"

Json = dict[str, Any]
Key = tuple[str, str, str]
"""Kind, namespace and name."""


def kustomize(overlay: str) -> dict[Key, Json]:
    return by_key(ran("kubectl", "kustomize", str(OVERLAYS / overlay)).stdout)


def helm(namespace: str, *settings: str) -> dict[Key, Json]:
    done = template(namespace, *settings)
    assert done.returncode == 0, done.stderr
    return by_key(done.stdout)


def template(namespace: str, *settings: str) -> subprocess.CompletedProcess[str]:
    flags = [f"--set={setting}" for setting in settings]
    return ran(
        *("helm", "template", RELEASE, str(CHART), f"--namespace={namespace}"),
        *("--kube-version=v1.36.3", *flags),
        check=False,
    )


def ran(
    program: str,
    *words: str,
    check: bool = True,
    stdin: str | None = None,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    path = find_programs([program])[program]
    return subprocess.run(
        [path, *words],
        input=stdin,
        cwd=folder,
        capture_output=True,
        text=True,
        check=check,
        timeout=60,
    )


def by_key(text: str) -> dict[Key, Json]:
    items = [item for item in yaml.safe_load_all(text) if item]
    found = {key_of(item): item for item in items}
    assert len(found) == len(items), "an object is there twice"
    return found


def key_of(item: Json) -> Key:
    metadata = item["metadata"]
    return item["kind"], metadata.get("namespace", ""), metadata["name"]


def moved(items: dict[Key, Json], namespace: str) -> str:
    """The objects as YAML for another namespace than the one they were rendered for."""
    before = {place for _, place, _ in items if place} or {NAMESPACE}
    (old,) = before
    text = yaml.safe_dump_all(items.values())
    return text.replace(f"namespace: {old}\n", f"namespace: {namespace}\n")
