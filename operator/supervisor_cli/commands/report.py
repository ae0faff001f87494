"""`report`: one archive that tells a stranger what went wrong, without secrets."""

from __future__ import annotations

import argparse
import io
import json
import tarfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from supervisor_cli.look import AGENT, Look, looking, report
from supervisor_cli.redact import redact, redact_text
from supervisor_cli.show import content_of
from supervisor_operator.clock import wall_clock
from supervisor_operator.core.words import MANAGED_SELECTOR, Label
from supervisor_operator.errors import ClusterError
from supervisor_operator.kube.cluster import EVENTS, HEARTBEATS, PODS, TEAMS, Object, Resource
from supervisor_operator.settings import version

TAIL = {"tailLines": "200", "limitBytes": "200000"}
OWNER_ONLY = 0o600


@dataclass(slots=True)
class Archive:
    files: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def add(self, name: str, found: object) -> None:
        self.files[name] = json.dumps(redact(found), indent=1)

    def add_text(self, name: str, text: str) -> None:
        self.files[name] = redact_text(text)

    def write(self, path: Path, moment: float) -> None:
        path.touch(mode=OWNER_ONLY)
        path.chmod(OWNER_ONLY)  # one that was there keeps its own otherwise
        with tarfile.open(path, "w:gz") as tar:
            for name, text in self.files.items():
                content = text.encode()
                entry = tarfile.TarInfo(f"supervisor-report/{name}")
                entry.size, entry.mtime, entry.mode = len(content), int(moment), OWNER_ONLY
                tar.addfile(entry, io.BytesIO(content))


async def run(options: argparse.Namespace) -> int:
    now = wall_clock()
    async with looking(options) as look:
        archive = await collect(look, logs=not options.no_logs)
    path = Path(options.file or f"supervisor-report-{now:%Y%m%dT%H%M%S}.tar.gz")
    archive.write(path, now.timestamp())
    print(f"{path}: {len(archive.files)} files, secrets redacted; look through it before sending")
    for line in archive.left_out:
        print(f"left out: {line}")
    return 0


async def collect(look: Look, *, logs: bool) -> Archive:
    archive, now = Archive(), wall_clock()
    major, minor = await look.cluster.version()
    about = {"plugin": f"{AGENT} {version()}", "kubernetes": f"{major}.{minor}"}
    archive.add("about.json", about | {"time": now.isoformat(), "namespace": look.namespace})
    items, beats = await look.supervisors(), await look.beats()
    archive.add("supervisors.json", items)
    archive.add("health.json", [content_of(report(item, beats, now)) for item in items])
    names = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in items}
    for resource, selector in ((TEAMS, ""), (HEARTBEATS, MANAGED_SELECTOR), (EVENTS, "")):
        found = [one async for one in _list(look, resource, selector, archive)]
        archive.add(f"{resource.plural}.json", [one for one in found if _is_ours(one)])
    pods = [one async for one in _list(look, PODS, MANAGED_SELECTOR, archive)]
    pods = [one for one in pods if _owner(one) in names]
    archive.add("pods.json", pods)
    for pod in pods if logs else ():
        await _add_log(look, pod, archive)
    return archive


async def _list(
    look: Look, resource: Resource, selector: str, archive: Archive
) -> AsyncIterator[Object]:
    """What we may not read is left out, and said so."""
    try:
        found = await look.cluster.list(resource, look.namespace, selector=selector)
    except ClusterError as error:
        archive.left_out.append(f"{resource.plural}: {error}")
        return
    for one in found.items:
        yield one


async def _add_log(look: Look, pod: Object, archive: Archive) -> None:
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    for container in pod["spec"]["containers"]:
        query = TAIL | {"container": container["name"]}
        try:
            async with look.cluster.logs(namespace, name, query) as pieces:
                text = b"".join([piece async for piece in pieces]).decode(errors="replace")
        except ClusterError as error:
            archive.left_out.append(f"log of {name}/{container['name']}: {error}")
            continue
        archive.add_text(f"logs/{namespace}/{name}/{container['name']}.log", text)


def _is_ours(item: Object) -> bool:
    """Of Events only those about what we look after."""
    about = item.get("regarding")
    return about is None or about.get("kind") in {"Supervisor", "SupervisorTeam", "Pod"}


def _owner(pod: Object) -> tuple[str, str]:
    labels = pod["metadata"].get("labels") or {}
    return pod["metadata"]["namespace"], labels.get(Label.SUPERVISOR, "")
