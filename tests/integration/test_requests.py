"""What one Supervisor's way to ACTIVE costs the API server: every request, by verb and resource."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.bench.scrape import Scrape
from tests.support.behind_proxy import Troubled, behind_proxy
from tests.support.builders import a_supervisor
from tests.support.fleet import beating
from tests.support.kubectl import Kubectl

NOT_OURS = {"leases", "validatingadmissionpolicies", "validatingadmissionpolicybindings"}
"""Asked for on and on, however many Supervisors there are."""
STATUS = "update supervisors/status"
WATCHES = {"watch pods", "watch heartbeats"}


def asked(troubled: Troubled) -> Counter[str]:
    """All that the operator has asked for so far, by its own count."""
    told = Scrape.of(troubled.operator.get("/metrics")).find("api_calls_total")
    found: Counter[str] = Counter()
    for labels, number in told:
        if labels["resource"] not in NOT_OURS:
            found[f"{labels['verb']} {labels['resource']}"] += int(number)
    return found


@pytest.mark.parametrize("source", ["None", "File"])
def test_the_way_to_active_is_paved_with_few_requests(
    fake_kubectl: Kubectl, operator_access: Path, tmp_path: Path, source: str
) -> None:
    kubectl = fake_kubectl
    with behind_proxy(kubectl, operator_access, tmp_path) as troubled:
        # Ready means listed; the watches that follow count once the server has begun to answer.
        troubled.operator.until(lambda: asked(troubled).keys() >= WATCHES)
        before = asked(troubled)
        written_before = len(troubled.proxy.writes)
        kubectl.create(a_supervisor(heartbeat={"source": source, "intervalSeconds": 1}))
        if source == "None":
            kubectl.wait_status("hello", phase="ACTIVE")
        else:
            kubectl.wait("sup/hello", "jsonpath={.status.startTime}")
            with beating(kubectl, ["hello-r1"], 0.5):
                kubectl.wait_status("hello", phase="ACTIVE")
        troubled.operator.until(lambda: asked(troubled)["create events"] == 2)
        cost = asked(troubled) - before
        written = len(troubled.proxy.writes) - written_before
    rights = {"get roles": 1, "get rolebindings": 1, "create roles": 1, "create rolebindings": 1}
    beats = {"create heartbeats": 1} | rights if source == "File" else {}
    # Pod created, pod running, first beat; one less where it runs before the first is written.
    assert cost.pop(STATUS) in ({2, 3} if source == "File" else {2})
    assert cost == {"create pods": 1, "create events": 2} | beats
    assert written >= sum(number for what, number in cost.items() if not what.startswith("get"))
