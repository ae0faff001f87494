"""`delete` backs up every object of our kinds and removes the CRDs; `restore` brings them back.

Works on the cluster of your KUBECONFIG with the kubectl of your PATH (or `KUBECTL`). Restored are
metadata and spec: status and Heartbeats are the operator's to write.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BACKUPS = HERE.parent / "backups"
GROUP = "supervision.dev"
KEPT_KINDS = ("supervisors", "supervisorteams")
ALL_KINDS = (*KEPT_KINDS, "heartbeats")
KEPT_METADATA = ("name", "namespace", "labels", "annotations")


class ManageError(Exception):
    """One line for the person at the terminal."""


def kubectl(*arguments: str, text: str | None = None) -> str:
    program = os.environ.get("KUBECTL", "kubectl")
    try:
        done = subprocess.run(
            [program, *arguments], input=text, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise ManageError(f"{program} not found: install kubectl or set KUBECTL") from error
    if done.returncode:
        raise ManageError(f"kubectl {' '.join(arguments[:3])}: {done.stderr.strip()}")
    return done.stdout


def installed() -> list[str]:
    names = kubectl("get", "crds", "-o", "name").split()
    return [kind for kind in ALL_KINDS if any(name.endswith(f"/{kind}.{GROUP}") for name in names)]


def read_objects() -> list[dict[str, Any]]:
    """Everything but what a team owns: the team makes its own Supervisors again."""
    kinds = [kind for kind in installed() if kind in KEPT_KINDS]
    if not kinds:
        return []
    resources = ",".join(f"{kind}.{GROUP}" for kind in kinds)
    items = json.loads(kubectl("get", resources, "-A", "-o", "json"))["items"]
    return [strip(item) for item in items if not item["metadata"].get("ownerReferences")]


def strip(item: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: item["metadata"][key] for key in KEPT_METADATA if key in item["metadata"]}
    return {key: item[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": metadata}


def delete(*, confirmed: bool) -> None:
    found = installed()
    if not found:
        raise ManageError(f"no CRD of {GROUP} on this cluster: nothing to delete")
    objects = read_objects()
    where = kubectl("config", "current-context").strip()
    what = f"{len(found)} CRDs of {GROUP} with {len(objects)} objects on context {where}"
    if not confirmed:
        raise ManageError(f"this deletes {what} and ends their pods: say CONFIRM=yes to go on")
    path = write_backup(objects)
    kubectl("delete", "crd", "--wait=true", "--timeout=60s", *(f"{kind}.{GROUP}" for kind in found))
    print(f"deleted {what}; restore them with: make crds-restore BACKUP={path}")


def write_backup(objects: list[dict[str, Any]]) -> Path:
    BACKUPS.mkdir(exist_ok=True)
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S}"  # noqa: TID251 - a file name for people
    path = BACKUPS / f"{GROUP}-{stamp}-{os.getpid()}.json"
    backup = {"apiVersion": "v1", "kind": "List", "items": objects}
    path.write_text(json.dumps(backup, indent=1), encoding="utf-8")
    return path


def restore(path: Path) -> None:
    try:
        objects = json.loads(path.read_text(encoding="utf-8"))["items"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ManageError(f"{path} is no backup made by crds-delete: {error}") from error
    kubectl("apply", "--server-side", "-f", str(HERE))
    kubectl(
        "wait", "--for=condition=Established", "crd", *(f"{kind}.{GROUP}" for kind in ALL_KINDS)
    )
    for item in objects:
        kubectl(
            "apply",
            "--server-side",
            "--field-manager=crds-restore",
            "-f",
            "-",
            text=json.dumps(item),
        )
    print(f"restored {len(objects)} objects from {path}")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="crds/manage.py", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("delete").add_argument("--yes", action="store_true")
    commands.add_parser("restore").add_argument("backup", type=Path)
    options = parser.parse_args(argv)
    try:
        if options.command == "delete":
            delete(confirmed=options.yes)
        else:
            restore(options.backup)
    except ManageError as error:
        print(f"crds: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
