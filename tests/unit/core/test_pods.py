"""The little of a pod that is kept of a LIST is all that decisions read."""

from __future__ import annotations

from supervisor_operator.core.pods import slim_pod, view_pod

POD = {
    "metadata": {
        "name": "hello-r2",
        "namespace": "default",
        "uid": "u2",
        "resourceVersion": "7",
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"supervision.dev/run": "2"},
        "annotations": {"supervision.dev/restarts": "1", "supervision.dev/template-hash": "abc"},
        "ownerReferences": [{"uid": "u1", "controller": True}],
        "managedFields": [{"manager": "kubelet"}],
    },
    "spec": {
        "nodeName": "node-1",
        "terminationGracePeriodSeconds": 7,
        "containers": [{"name": "web", "image": "a:1"}, {"name": "side", "image": "b:1"}],
        "volumes": [{"name": "beats", "emptyDir": {}}],
    },
    "status": {
        "phase": "Failed",
        "reason": "Evicted",
        "conditions": [{"type": "Ready", "status": "False", "reason": "PodFailed"}],
        "containerStatuses": [
            {"name": "web", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}},
            {"name": "side", "state": {"running": {}}},
        ],
    },
}


def test_a_slim_pod_is_seen_as_the_whole_one() -> None:
    slim = slim_pod(POD)
    assert view_pod(slim) == view_pod(POD)
    assert "managedFields" not in slim["metadata"]
    assert "volumes" not in slim["spec"]
