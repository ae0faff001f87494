"""Installs what the operator needs in a cluster whose CRDs are there, and gives it its own token.

An operator under test never acts with the admin's rights: what its ServiceAccount may not do fails.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.cluster.local import Cluster
from tests.cluster.places import CHECKOUT
from tests.support.builders import a_supervisor, an_object
from tests.support.kubectl import Kubectl
from tests.support.tokens import Agent, view_kubeconfig

MANIFESTS = CHECKOUT / "manifests"
NAMESPACE = "supervision-system"
ACCOUNT = "supervisor-operator"
TOKEN_LIFE = "12h"  # noqa: S105 - a time
WAIT_SECONDS = 30.0
LOOK_SECONDS = 0.05


class NotInForceError(AssertionError):
    pass


def install(cluster: Cluster) -> None:
    """Apply RBAC and policies; returns when both policies refuse what they should."""
    kubectl = Kubectl(cluster, NAMESPACE)
    for part in ("-f=base/namespace.yaml", "-k=policies", "-k=rbac"):
        flag, _, path = part.partition("=")
        kubectl("apply", "--server-side", "--force-conflicts", flag, str(MANIFESTS / path))
    _wait_for_heartbeat_policy(kubectl)
    too_large = a_supervisor("too-large", config={"data": "x" * 65536})
    create = partial(kubectl.ask, "create", "--dry-run=server", "-f", "-", stdin=too_large)
    _wait_for_refusal("supervision-supervisors", lambda: create().err)


def operator_kubeconfig(cluster: Cluster, folder: Path, namespace: str = NAMESPACE) -> Path:
    """A kubeconfig with a token of the operator's own ServiceAccount."""
    kubectl = Kubectl(cluster, namespace)
    config = view_kubeconfig(kubectl)
    config["users"][0]["user"] = {"token": _operator_token(kubectl)}
    path = folder / "operator.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return path


def _wait_for_heartbeat_policy(kubectl: Kubectl) -> None:
    """The operator's account may patch a Heartbeat by RBAC, so only the policy can refuse it."""
    spec = {"podUID": "none", "supervisor": "none", "intervalSeconds": 1}
    probe = an_object("Heartbeat", "policy-probe", spec)
    kubectl("apply", "--server-side", "-f", "-", stdin=probe)
    with Agent(kubectl, "policy-probe", _operator_token(kubectl)) as stranger:
        _wait_for_refusal("supervision-heartbeats", lambda: stranger.beat().message)
    kubectl("delete", "hb", "policy-probe")


def _wait_for_refusal(policy: str, attempt: Callable[[], str]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while f"ValidatingAdmissionPolicy '{policy}'" not in (answer := attempt()):
        if time.monotonic() > deadline:
            raise NotInForceError(f"{policy} does not refuse: {answer}")
        time.sleep(LOOK_SECONDS)


def _operator_token(kubectl: Kubectl) -> str:
    return kubectl("create", "token", ACCOUNT, f"--duration={TOKEN_LIFE}").out.strip()
