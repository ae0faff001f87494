"""CRDs change under living objects: forward, back, away and home again."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from supervisor_operator.api.v1alpha1.kinds import SUPERVISOR
from supervisor_operator.crdgen.crd import build_crd
from tests.cluster.local import Cluster
from tests.cluster.ways import open_cluster
from tests.support.builders import a_supervisor, a_team
from tests.support.kubectl import Kubectl

ROOT = Path(__file__).parents[2]


@pytest.fixture
def fresh(control: Cluster) -> Iterator[Kubectl]:
    """A server of this test's own: changing CRDs under other tests would be rude."""
    assert control.way == "local", "never delete CRDs on a borrowed cluster"
    with open_cluster("control") as cluster:
        yield Kubectl(cluster, "default")


def crd_with(field: str | None) -> dict[str, Any]:
    crd = build_crd(SUPERVISOR)
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    if field:
        spec["properties"][field] = {"type": "string", "description": "From the future."}
    return crd


def install(kubectl: Kubectl, field: str | None) -> None:
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=crd_with(field))


def wait_until_served(kubectl: Kubectl, item: dict[str, Any], *, known: bool) -> None:
    """The server takes a moment to serve a new schema; ask it until it does."""
    for _ in range(200):
        answer = kubectl.ask("create", "--dry-run=server", "-f", "-", stdin=item)
        if (answer.code == 0) == known:
            return
    pytest.fail(f"the schema was not served: {answer.err}")


def test_forward_and_back_loses_nothing_the_older_schema_knows(fresh: Kubectl) -> None:
    before = fresh.create(a_supervisor("old", config={"a": {"b": 1}}, restartRequest="x"))
    newer = a_supervisor("new", futureField="hello", description="made by the new schema")

    install(fresh, "futureField")
    wait_until_served(fresh, newer, known=True)
    fresh.create(newer)
    fresh("patch", "sup", "old", "--type=merge", "-p", '{"spec": {"futureField": "used"}}')

    install(fresh, None)
    wait_until_served(fresh, a_supervisor("probe", futureField="x"), known=False)
    assert fresh.get("sup", "old")["spec"] == before["spec"]
    assert fresh.get("sup", "new")["spec"]["description"] == "made by the new schema"
    fresh("patch", "sup", "old", "--type=merge", "-p", '{"spec": {"operatingMode": "Paused"}}')
    after = fresh.get("sup", "old")
    assert after["spec"] == before["spec"] | {"operatingMode": "Paused"}
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


def manage(kubectl: Kubectl, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "KUBECONFIG": kubectl.cluster.kubeconfig,
        "KUBECTL": kubectl.cluster.kubectl,
    }
    return subprocess.run(
        [sys.executable, "crds/manage.py", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_delete_keeps_a_backup_that_restores_everything(fresh: Kubectl) -> None:
    supervisor = fresh.create(a_supervisor(config={"deep": [{"er": None}]}))
    fresh("label", "sup", "hello", "keep=me")
    team = fresh.create(a_team(objective="win", members=[{"name": "a", "template": {}}]))

    careful = manage(fresh, "delete")
    assert careful.returncode == 1
    assert (
        "this deletes 3 CRDs of supervision.dev with 2 objects on context local" in careful.stderr
    )
    assert fresh.get("sup", "hello")["spec"] == supervisor["spec"], "nothing happened without a yes"

    done = manage(fresh, "delete", "--yes")
    assert done.returncode == 0, done.stderr
    backup = Path(done.stdout.strip().rpartition("BACKUP=")[2])
    try:
        assert len(yaml.safe_load(backup.read_text())["items"]) == 2
        assert "supervision.dev" not in fresh("get", "crds").out
        assert "nothing to delete" in manage(fresh, "delete", "--yes").stderr

        restored = manage(fresh, "restore", str(backup))
        assert restored.returncode == 0, restored.stderr
        again = fresh.get("sup", "hello")
        assert again["spec"] == supervisor["spec"]
        assert again["metadata"]["labels"] == {"keep": "me"}
        assert fresh.get("supteam", "crew")["spec"] == team["spec"]
    finally:
        backup.unlink()


def test_restoring_what_is_no_backup_says_so(fresh: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "junk").write_text("{")
    for name in ("junk", "nothing"):
        done = manage(fresh, "restore", str(tmp_path / name))
        assert done.returncode == 1
        assert "is no backup made by crds-delete" in done.stderr
