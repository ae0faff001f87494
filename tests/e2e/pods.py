"""Pods as tests on a real node want them: a program in the sample agent's image."""

from __future__ import annotations

from typing import Any

from tests.cluster.images import SAMPLE_AGENT

SHARED = "/shared"
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
STAYS = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("here I am", flush=True)
while True:
    time.sleep(60)
"""


def a_container(program: str, name: str = "agent", **fields: Any) -> dict[str, Any]:
    mounts = [{"name": "shared", "mountPath": SHARED}]
    return {
        "name": name,
        "image": SAMPLE_AGENT,
        "imagePullPolicy": "Never",
        "command": ["python3", "-c", program],
        "volumeMounts": mounts,
    } | fields


def a_pod(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    own = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 2,
        "containers": list(containers) or [a_container(STAYS)],
        "volumes": [{"name": "shared", "emptyDir": {}}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": own | spec}
