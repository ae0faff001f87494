"""The files of the page: whole, small, and without what they must never do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from supervisor_api.routes.page import FOLDER, MEDIA_TYPES, POLICY

FILES = sorted(FOLDER.iterdir())
SCRIPTS = [path for path in FILES if path.suffix == ".js"]
IMPORT = re.compile(r'from "\./([\w.]+)"')
LOADED = re.compile(r'(?:src|href)="(/[^"#]+)"')
NAMESPACE = "http://www.w3.org/2000/svg"
NEVER = (
    *("innerHTML =", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"),
    *("localStorage", "sessionStorage", "indexedDB", "document.cookie", 'setAttribute("style'),
)
BYTES = 100_000


def test_every_file_that_is_named_is_there_and_every_file_is_named() -> None:
    named = {"index.html"} | set(LOADED.findall((FOLDER / "index.html").read_text()))
    for script in SCRIPTS:
        named |= set(IMPORT.findall(script.read_text()))
    assert {name.removeprefix("/") for name in named} == {path.name for path in FILES}
    assert {path.suffix for path in FILES} == set(MEDIA_TYPES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_is_inline_foreign_or_kept(path: Path) -> None:
    text = path.read_text()
    assert re.findall(r"https?://", text.replace(NAMESPACE, "")) == []
    assert [word for word in NEVER if word in text] == []
    if path.suffix == ".html":
        assert "style=" not in text
        assert re.findall(r"<script(?![^>]* src=)", text) == []
        assert re.findall(r"\son\w+=", text) == []


def test_it_is_small_enough_to_be_read() -> None:
    assert sum(path.stat().st_size for path in FILES) < BYTES


def test_the_policy_allows_our_own_files_only() -> None:
    sources = {word for directive in POLICY for word in directive.split()[1:]}
    assert sources == {"'none'", "'self'", "'script'"}
