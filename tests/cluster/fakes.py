"""Nodes that only exist in the API, whose pods live by the stages in `fake/`."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.control import ControlPlane

FAKE = Path(__file__).parent / "fake"


def start_fake_nodes(plane: ControlPlane) -> None:
    port = plane.ports["kwok"]
    flags: dict[str, object] = {
        "kubeconfig": plane.client("kwok", "system:masters"),
        "config": FAKE / "stages.yaml",
        "manage-all-nodes": "false",
        "manage-nodes-with-label-selector": "fake.test/node=true",
        "node-ip": "127.0.0.1",
        "cidr": "127.64.0.0/16",
        "node-lease-duration-seconds": 40,
        "server-address": f"127.0.0.1:{port}",
        "node-port": port,
    }
    plane.launch("kwok", flags, f"http://127.0.0.1:{port}/healthz", tls=False)
    plane.kubectl("apply", "--server-side", "-f", str(FAKE / "nodes.yaml"))
    plane.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
