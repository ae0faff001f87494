"""The operator in the cluster, and a namespace per file in which its agents live."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Tier
from tests.support.in_cluster import deploy, restricted_namespace
from tests.support.kubectl import Kubectl

HERE = Path(__file__).parent
LAST = HERE / "test_rights.py"
"""Judges what all others have led to, so it comes last, and only after all of them."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if item.path.parent == HERE]
    judging = [item for item in ours if item.path == LAST]
    rest = [item for item in items if item.path != LAST]
    if {item.path for item in ours} == set(HERE.glob("test_*.py")):
        end = 1 + max(at for at, item in enumerate(rest) if item.path.parent == HERE)
        items[:] = rest[:end] + judging + rest[end:]
    elif judging:
        config.hook.pytest_deselected(items=judging)
        items[:] = rest


@pytest.fixture(scope="session")
def operator_kubectl(node_tier: Tier) -> Kubectl:
    """kubectl where the operator runs, in the cluster and from its image."""
    return deploy(node_tier.cluster())


@pytest.fixture(scope="module")
def agents(operator_kubectl: Kubectl) -> Iterator[Kubectl]:
    """kubectl in a namespace that enforces PSS restricted and that the operator looks after."""
    with restricted_namespace(operator_kubectl.cluster) as kubectl:
        yield kubectl
