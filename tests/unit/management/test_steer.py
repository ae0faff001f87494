"""Orders from the plugin over real HTTP: one that is refused keeps nobody from the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from supervisor_cli.__main__ import read_options
from supervisor_cli.commands.steer import run
from tests.support.api_server import a_kubeconfig, api_server


def item(name: str, revision: int = 1) -> dict[str, Any]:
    metadata = {"namespace": "shop", "name": name, "uid": name, "resourceVersion": str(revision)}
    return {"metadata": metadata, "spec": {}, "status": {"run": 3}}


async def test_each_is_told_of_and_the_end_says_whether_all_obeyed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with api_server() as server:
        everybody = [item("a"), item("b"), item("c")]
        server.says({"metadata": {"resourceVersion": "1"}, "items": everybody})
        server.refuses(403, "Forbidden", "a is not yours")
        server.says(item("b", revision=2))
        server.says(item("c"))
        access = a_kubeconfig(tmp_path, server.url, {"token": "t"})
        line = f"restart -l desk=one -n shop --kubeconfig {access}"
        assert await run(read_options(line.split())) == 1
        assert server.last.body == {
            "spec": {"restartRequest": "restart of run 3"},
            "metadata": {"uid": "c"},
        }
    said = capsys.readouterr()
    assert said.err == "error: a is not yours\n"
    assert said.out.splitlines() == [
        "supervisor shop/b restart asked for",
        "supervisor shop/c restart asked for already",
    ]


@pytest.mark.parametrize("words", ["stop", "stop -l desk=none"])
async def test_an_order_to_nobody_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    async with api_server() as server:
        server.says({"metadata": {"resourceVersion": "1"}, "items": []})
        access = a_kubeconfig(tmp_path, server.url, {"token": "t"})
        assert await run(read_options([*words.split(), f"--kubeconfig={access}"])) != 0
    assert capsys.readouterr().err.startswith("error: ")
