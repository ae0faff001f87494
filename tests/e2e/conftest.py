"""The operator in the cluster, and a namespace per file in which its agents live."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import Tier
from tests.support.in_cluster import deploy, restricted_namespace
from tests.support.kubectl import Kubectl


@pytest.fixture(scope="session")
def operator_kubectl(node_tier: Tier) -> Kubectl:
    """kubectl where the operator runs, in the cluster and from its image."""
    return deploy(node_tier.cluster())


@pytest.fixture(scope="module")
def agents(operator_kubectl: Kubectl) -> Iterator[Kubectl]:
    """kubectl in a namespace that enforces PSS restricted and that the operator looks after."""
    with restricted_namespace(operator_kubectl.cluster) as kubectl:
        yield kubectl
