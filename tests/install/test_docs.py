"""The documents: every link leads somewhere, every file is there, every promise has its test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from supervisor_operator.api.v1alpha1.policies import HeartbeatSource
from supervisor_operator.core.actions import CreatePod
from supervisor_operator.core.tree import LineProblem
from supervisor_operator.core.words import EventReason, Reason
from tests.cluster.places import CHECKOUT
from tests.support.kubectl import Kubectl
from tests.support.rendering import ran
from tests.support.sim import Sim

PAGES = sorted(path for pattern in ("*.md", "docs/**/*.md") for path in CHECKOUT.glob(pattern))
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(#[^)]*)?\)")
FILE = re.compile(r"`((?:tests|manifests|crds|docs|operator)/[\w./-]+)`")
MUST_NOT_BE = {"operator/__init__.py"}


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading).strip().lower() for heading in headings)
    return {text.replace(" ", "-") for text in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_link_and_file_of_a_page_is_there(page: Path) -> None:
    text = page.read_text()
    for target, anchor in LINK.findall(text):
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor[1:] in anchors(found), f"{page.name} links to {target}{anchor}"
    for name in FILE.findall(text):
        assert (CHECKOUT / name).exists() != (name in MUST_NOT_BE), f"{page.name} names {name}"


def test_every_page_is_found_from_readme() -> None:
    found: set[Path] = set()
    to_read = {CHECKOUT / "README.md"}
    while to_read:
        page = to_read.pop()
        found.add(page)
        linked = {(page.parent / target).resolve() for target, _ in LINK.findall(page.read_text())}
        folders = {inner for path in linked if path.is_dir() for inner in path.glob("*.md")}
        to_read |= {path for path in linked | folders if path.suffix == ".md"} - found
    assert len(found) > 15
    assert {page for page in PAGES if page.is_relative_to(CHECKOUT / "docs")} <= found


def test_every_promise_names_a_test_that_exists() -> None:
    lines = (CHECKOUT / "docs/promises.md").read_text().splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| ") and "---" not in line][1:]
    assert len(rows) > 15
    for row in rows:
        named = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", row[2])
        assert named, row
        for path, test in named:
            assert (CHECKOUT / path).exists(), path
            assert not test or f"def {test}(" in (CHECKOUT / path).read_text(), f"{path}::{test}"


def first_words(section: str) -> set[str]:
    """What the first column of a section's tables, and the lines between them, have as words."""
    lines = section.splitlines()
    told = (line.split("|")[1] if line.startswith("|") else line for line in lines)
    return {word for text in told for word in re.findall(r"`([A-Z][A-Za-z]+)`", text)}


def test_every_reason_and_event_is_on_its_page() -> None:
    _, supervisors, teams, events = (CHECKOUT / "docs/reasons.md").read_text().split("\n## ")
    reasons = {*Reason, *filter(None, LineProblem)}
    assert first_words(supervisors) | first_words(teams) == reasons
    events = events[: events.rindex("|")]
    assert first_words(events) == set(EventReason)


@pytest.mark.parametrize("source", HeartbeatSource)
def test_an_agent_finds_what_the_page_says(source: HeartbeatSource) -> None:
    text = (CHECKOUT / "docs/heartbeats.md").read_text()
    rows = re.findall(r"^\| (`SUPERVISION_[^|]*) \| ([^|]*) \|", text, re.MULTILINE)
    told = {
        name
        for names, sources in rows
        if source in sources.split(", ") or sources.startswith("any")
        for name in re.findall(r"`(\w+)`", names)
    }
    sim = Sim(heartbeat={"source": source.value}, config={"a": 1})
    (create,) = sim.plan().actions
    assert isinstance(create, CreatePod)
    (agent,) = create.manifest["spec"]["containers"]
    assert {variable["name"] for variable in agent["env"]} == told


COMMANDS = re.compile(
    r"(?:^\$ |`)((?:kubectl apply --server-side|helm install) [^`\n]*)", re.MULTILINE
)
INSTALLS = ("README.md", "docs/operations/install.md")


@pytest.mark.parametrize("page", INSTALLS)
def test_the_commands_that_install_are_taken_by_the_server(kubectl: Kubectl, page: str) -> None:
    """As they stand on the page, on a server that forgets them: `--dry-run=server`."""
    for name in ("supervision-system", "supervised-agents"):
        kubectl.ask("create", "namespace", name)
    found = COMMANDS.findall((CHECKOUT / page).read_text())
    assert len(found) >= 2
    for command in found:
        program, *words = command.replace("image=…", "image=localhost/ours:1").split()
        flags = [f"--kubeconfig={kubectl.cluster.kubeconfig}", "--dry-run=server"]
        forced = ["--force-conflicts"] if program == "kubectl" else ["--set=crds=false"]
        done = ran(program, *words, *flags, *forced, check=False, folder=CHECKOUT)
        assert done.returncode == 0, f"{command}: {done.stderr}"
