"""`logs`: which pod is asked for, and with which words, over real HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from supervisor_cli.__main__ import read_options
from supervisor_cli.commands.logs import run
from supervisor_operator.errors import ConflictError, InvalidError, NotFoundError
from tests.support.api_server import a_kubeconfig, api_server

HELLO: dict[str, dict[str, Any]] = {
    "metadata": {"namespace": "shop", "name": "hello", "uid": "u"},
    "status": {"run": 3, "podName": "hello-r3"},
}


@pytest.mark.parametrize(
    ("words", "pod", "query"),
    [
        ("", "hello-r3", {}),
        ("--previous --tail 5", "hello-r2", {"tailLines": "5"}),
        ("-f -c side", "hello-r3", {"container": "side", "follow": "true"}),
    ],
)
async def test_the_log_goes_out_as_it_comes_in(
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    words: str,
    pod: str,
    query: dict[str, str],
) -> None:
    async with api_server() as server:
        server.says(HELLO)
        server.streams(b"one\n", b"two \xff\n")
        access = a_kubeconfig(tmp_path, server.url, {"token": "t"})
        line = f"logs hello -n shop --kubeconfig {access} {words}"
        assert await run(read_options(line.split())) == 0
        assert server.last.path == f"/api/v1/namespaces/shop/pods/{pod}/log"
        assert server.last.query == query
    assert capsysbinary.readouterr().out == b"one\ntwo \xff\n"


@pytest.mark.parametrize("of", ["hello-r2", "hello-r1"])
async def test_of_a_pod_that_is_gone_the_last_words_are_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], of: str
) -> None:
    status = HELLO["status"] | {"lastTermination": {"podName": of, "message": "KeyError: 'BTC'\n"}}
    async with api_server() as server:
        server.says(HELLO | {"status": status})
        server.refuses(404, "NotFound", 'pods "hello-r2" not found')
        access = a_kubeconfig(tmp_path, server.url, {"token": "t"})
        line = f"logs hello --previous -n shop --kubeconfig {access}"
        if of != "hello-r2":
            with pytest.raises(NotFoundError, match='pods "hello-r2" not found'):
                await run(read_options(line.split()))
            return
        assert await run(read_options(line.split())) == 0
    said = capsys.readouterr()
    assert said.out == "KeyError: 'BTC'\n"
    assert "hello-r2 is gone" in said.err


async def test_a_name_in_several_namespaces_is_asked_back(tmp_path: Path) -> None:
    twins = [HELLO, HELLO | {"metadata": HELLO["metadata"] | {"namespace": "desk"}}]
    async with api_server() as server:
        server.says({"metadata": {"resourceVersion": "1"}, "items": twins})
        access = a_kubeconfig(tmp_path, server.url, {"token": "t"})
        with pytest.raises(ConflictError, match="in desk, shop: choose one with -n"):
            await run(read_options(["logs", "hello", "-A", f"--kubeconfig={access}"]))


async def test_a_refusal_is_the_api_servers(tmp_path: Path) -> None:
    async with api_server() as server:
        server.says(HELLO)
        server.refuses(400, "BadRequest", "choose one of: [a b]")
        access = a_kubeconfig(tmp_path, server.url, {"token": "t"})
        line = f"logs hello -n shop --kubeconfig {access}"
        with pytest.raises(InvalidError, match="choose one of"):
            await run(read_options(line.split()))
