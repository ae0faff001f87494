"""What the API server itself wrote down: who asked for what, and what the answer was."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.local import Cluster
from tests.support.install import ACCOUNT, MANIFESTS, NAMESPACE

Entry = dict[str, Any]
Right = tuple[str, str]
"""A verb, and a resource as RBAC writes it."""

USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
READS = {"get", "list", "watch"}
DECISION = "authorization.k8s.io/decision"
TOKEN = "authentication.kubernetes.io/credential-id"  # noqa: S105 - where it is named


class AuditLog:
    """What is written from now on; all of it with `start=0`."""

    def __init__(self, cluster: Cluster, start: int | None = None) -> None:
        assert cluster.audit_log, "only a local cluster shows its audit log"
        self._path = Path(cluster.audit_log)
        self._start = self._path.stat().st_size if start is None else start

    def entries(self, user: str = USER) -> list[Entry]:
        with self._path.open() as file:
            file.seek(self._start)
            found = [_entry(line) for line in file]
        return [entry for entry in found if entry and entry["user"].get("username") == user]


def _entry(line: str) -> Entry | None:
    """None for what a server wrote half before it was killed."""
    with suppress(json.JSONDecodeError):
        found: Entry = json.loads(line)
        return found
    return None


def right_of(entry: Entry) -> Right:
    what = entry["objectRef"]
    subresource = f"/{what['subresource']}" if "subresource" in what else ""
    return entry["verb"], what["resource"] + subresource


def used(entries: list[Entry]) -> set[Right]:
    return {right_of(entry) for entry in entries if "resource" in entry.get("objectRef", {})}


def denied(entries: list[Entry]) -> list[Entry]:
    """What RBAC forbade; what a policy, a quota or Pod Security refused was allowed by it."""
    return [one for one in entries if one.get("annotations", {}).get(DECISION) == "forbid"]


def when(entry: Entry) -> datetime:
    """The moment the server was asked."""
    return datetime.fromisoformat(entry["requestReceivedTimestamp"])


def token_of(entry: Entry) -> str:
    """Which of the account's tokens it came with."""
    (found,) = entry["user"]["extra"][TOKEN]
    return str(found)


def token_id(kubeconfig: Path) -> str:
    """What the token of a kubeconfig is called there."""
    token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    claims = token.split(".")[1]
    padded = claims + "=" * (-len(claims) % 4)
    return f"JTI={json.loads(urlsafe_b64decode(padded))['jti']}"


def granted() -> set[Right]:
    """All that the shipped Roles give the operator."""
    roles = [
        item
        for path in (MANIFESTS / "rbac").glob("*.yaml")
        for item in yaml.safe_load_all(path.read_text())
        if item["kind"] in {"Role", "ClusterRole"}
    ]
    return {
        (verb, resource)
        for role in roles
        for rule in role["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }
