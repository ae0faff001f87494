"""The page in a browser, before a real API server; people with real tokens look at it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.cluster.errors import ClusterError
from tests.conftest import NOT_TESTED, Tier
from tests.support.browser import Visitor, open_browser, visiting
from tests.support.kubectl import Kubectl
from tests.support.management import (
    ApiProcess,
    allow_in_namespace,
    api_kubeconfig,
    install_api,
    make_account,
    serving,
)

LOOK = "supervisors,supervisorteams"


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    with ExitStack() as stack:
        try:
            found = stack.enter_context(open_browser())
        except ClusterError as error:
            missing: Counter[str] = request.config.stash[NOT_TESTED]
            missing[f"the page cannot be looked at here: {error}"] += 1
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(str(error))
        yield found


@pytest.fixture(scope="module")
def api_access(fake_tier: Tier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    cluster = fake_tier.cluster()
    install_api(cluster)
    return api_kubeconfig(cluster, tmp_path_factory.mktemp("access"))


@pytest.fixture(scope="module")
def api(
    operator_access: Path, api_access: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApiProcess]:
    assert operator_access.exists(), "the kinds are installed"
    with serving(api_access, tmp_path_factory.mktemp("api"), "--stream-seconds=0.5") as found:
        yield found


@dataclass(frozen=True, slots=True)
class People:
    """In the test's own namespace: the clerk may do all, the guest may only look."""

    kubectl: Kubectl
    clerk: str
    guest: str


@pytest.fixture
def people(api: ApiProcess, fake_kubectl: Kubectl) -> People:
    assert api.port, "its account and rights are there"
    clerk, guest = (make_account(fake_kubectl, name) for name in ("clerk", "guest"))
    allow_in_namespace(fake_kubectl, "clerk")
    fake_kubectl("create", "role", "guest", "--verb=get,list,watch", f"--resource={LOOK}")
    subject = f"--serviceaccount={fake_kubectl.namespace}:guest"
    fake_kubectl("create", "rolebinding", "guest", "--role=guest", subject)
    return People(fake_kubectl, clerk, guest)


@pytest.fixture
def visitor(browser: Browser, api: ApiProcess) -> Iterator[Visitor]:
    with visiting(browser, f"http://127.0.0.1:{api.port}") as found:
        yield found
        assert found.strange == [], "no request leaves the origin"
        refused = [said for said in found.complaints if "the server responded with" not in said]
        assert refused == [], "the policy forbids nothing that the page does"
