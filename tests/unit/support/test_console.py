"""How a page is read, and what counts as its words coming true."""

from __future__ import annotations

from pathlib import Path

from tests.support.console import Step, steps

PAGE = """
```console
$ make up          # all of it
[1/2] tools  v1 from the build cache   0 s
…
Next: export KUBECONFIG=…
$ kubectl get sup
NAME    RESTARTS   AGE
hello   1/3        9s
```
"""
SAID = """
[1/2] tools  v1 built now              12 s
[2/2] more
Next: export KUBECONFIG=/a/b
"""


def read(folder: Path) -> list[Step]:
    page = folder / "page.md"
    page.write_text(PAGE)
    return steps(page)


def test_a_page_is_read_command_by_command(tmp_path: Path) -> None:
    up, get = read(tmp_path)
    assert (up.command, get.command) == ("make up", "kubectl get sup")
    assert len(up.shown) == 3
    assert get.shown[-1].startswith("hello")


def test_times_may_differ_and_what_is_left_out_too(tmp_path: Path) -> None:
    up, get = read(tmp_path)
    assert up.missing_in(SAID) == []
    assert get.missing_in("NAME RESTARTS AGE\nhello  1/3  2m3s\nmore") == []


def test_anything_else_must_be_there_in_order(tmp_path: Path) -> None:
    up, get = read(tmp_path)
    assert up.missing_in(SAID.replace("KUBECONFIG", "PATH")) == ["Next: export KUBECONFIG=…"]
    assert up.missing_in("\n".join(reversed(SAID.splitlines()))) == ["Next: export KUBECONFIG=…"]
    assert get.missing_in("NAME RESTARTS AGE\nhello 2/3 9s") == ["hello 1/3 #"]
