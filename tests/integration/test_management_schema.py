"""Random questions by the API's own document: no bug, and no answer that the document lacks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.conftest import Tier
from tests.integration.test_management_rights import operations
from tests.support.builders import AGENT
from tests.support.kubectl import Kubectl
from tests.support.management import (
    Caller,
    allow_in_namespace,
    api_kubeconfig,
    install_api,
    make_account,
    serving,
)

CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ENDLESS = "get_events"
EXAMPLES = 4
MODES = {"fitting": GenerationMode.POSITIVE, "unfitting": GenerationMode.NEGATIVE}


@dataclass(frozen=True, slots=True)
class Fuzzer:
    """Somebody with all rights in one namespace: what is made up harms nobody else."""

    caller: Caller
    namespace: str
    schema: Any

    def make(self, kind: str) -> dict[str, str]:
        """An object that is there, as path parameters."""
        member = {"name": "first", "template": {"agent": AGENT}}
        spec = {"members": [member]} if kind == "teams" else {"agent": AGENT}
        name = f"f-{uuid.uuid4().hex[:8]}"
        body = {"name": name, "namespace": self.namespace, "spec": spec}
        made = self.caller.ask("POST", f"/api/v1/{kind}", body)
        assert made.status == 201, made.body
        found = {"id": made.json["id"], "namespace": self.namespace, "name": name}
        return found | {"member": "first"}


@pytest.fixture(scope="module")
def fuzzer(control_tier: Tier, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzer]:
    cluster = control_tier.cluster()
    install_api(cluster)
    kubectl = Kubectl(cluster, f"test-{uuid.uuid4().hex[:8]}")
    kubectl("create", "namespace", kubectl.namespace)
    token = make_account(kubectl, "fuzzer")
    allow_in_namespace(kubectl, "fuzzer")
    folder = tmp_path_factory.mktemp("api")
    flags = ("--requests-per-second=10000", "--burst=10000")
    with serving(api_kubeconfig(cluster, folder), folder, *flags) as api:
        caller = Caller(api.port, token)
        document = caller.get("/api/v1/openapi.json").json
        yield Fuzzer(caller, kubectl.namespace, schemathesis.openapi.from_dict(document))
        assert "Traceback" not in api.log
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


@pytest.mark.parametrize("mode", list(MODES))
@pytest.mark.parametrize("name", sorted(operations().keys() - {ENDLESS}))
def test_made_up_requests_meet_no_bug_and_no_answer_outside_the_document(
    fuzzer: Fuzzer, name: str, mode: str
) -> None:
    operation = fuzzer.schema.find_operation_by_id(name)
    real = fuzzer.make("teams" if "/teams/{" in operation.path else "supervisors")
    headers = {"Authorization": f"Bearer {fuzzer.caller.token}"}
    count = 0

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=MODES[mode]), known=st.booleans())
    def ask(case: Any, known: bool) -> None:  # noqa: FBT001 - drawn by hypothesis
        nonlocal count
        if known and case.path_parameters:
            case.path_parameters = {key: real[key] for key in case.path_parameters}
        case.call_and_validate(
            base_url=f"http://127.0.0.1:{fuzzer.caller.port}", headers=headers, checks=CHECKS
        )
        count += 1

    ask()
    assert count
