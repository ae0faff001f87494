"""The operator as its users run it: from its image, in the cluster, with overlay `cluster`."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster.local import Cluster
from tests.support.install import ACCOUNT, MANIFESTS, NAMESPACE, install
from tests.support.kubectl import Kubectl

OVERLAY = MANIFESTS / "overlays" / "cluster"
DEPLOYMENT = f"deployment/{ACCOUNT}"
API = MANIFESTS / "api"
API_DEPLOYMENT = "deployment/supervisor-api"
ROLLOUT_SECONDS = 50
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"


def deploy(cluster: Cluster) -> Kubectl:
    """Install all there is and wait until the operator is ready; kubectl in its namespace."""
    install(cluster)
    kubectl = Kubectl(cluster, NAMESPACE)
    kubectl("apply", "--server-side", "--force-conflicts", "-k", str(OVERLAY))
    kubectl("rollout", "status", DEPLOYMENT, f"--timeout={ROLLOUT_SECONDS}s")
    return kubectl


@contextmanager
def restricted_namespace(cluster: Cluster) -> Iterator[Kubectl]:
    """kubectl in a new namespace that admits no pod but what PSS `restricted` allows."""
    kubectl = Kubectl(cluster, f"agents-{uuid.uuid4().hex[:8]}")
    kubectl("create", "namespace", kubectl.namespace)
    kubectl("label", "namespace", kubectl.namespace, RESTRICTED)
    yield kubectl
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


def operator_node(kubectl: Kubectl) -> int:
    """The number of the node that the operator runs on."""
    selector = f"--selector=app.kubernetes.io/name={ACCOUNT}"
    (pod,) = kubectl("get", "pods", selector, "-o", "json").json["items"]
    return int(pod["spec"]["nodeName"].rpartition("-")[2])
