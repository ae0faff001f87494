"""How the API server is reached: by which proxy, and without asking anew for each request."""

from __future__ import annotations

from pathlib import Path

import pytest

from supervisor_operator.kube.configuration import load_configuration
from tests.support.kubeconfig import write_plain_kubeconfig

SERVER = "https://api.example.test:6443"
PROXY = "http://proxy.example.test:3128"


@pytest.fixture(autouse=True)
def _no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    return str(write_plain_kubeconfig(tmp_path / "config", SERVER))


async def test_without_a_proxy_none_is_used(kubeconfig: str) -> None:
    assert (await load_configuration(kubeconfig)).proxy is None


async def test_the_proxy_of_the_environment_is_used(
    kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    assert (await load_configuration(kubeconfig)).proxy == PROXY


async def test_a_server_that_needs_no_proxy_is_reached_without(
    kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    monkeypatch.setenv("NO_PROXY", "example.test")
    assert (await load_configuration(kubeconfig)).proxy is None


async def test_requests_do_not_ask_the_environment_again(kubeconfig: str) -> None:
    found = await load_configuration(kubeconfig)
    assert found.client_session_kwargs == {"trust_env": False}
