"""`kubectl supervisor page`: a browser is signed in, and nobody sees a token."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Browser, expect

from supervisor_operator.core.states import State
from tests.page.conftest import People
from tests.page.test_fleet import put
from tests.support.browser import visiting
from tests.support.management import ApiProcess, write_kubeconfig
from tests.support.page_command import LINK, page_command, wait_for

BROWSER = """#!/bin/sh
echo "$1" > "{folder}/argument"
"""


def test_a_link_signs_in_once_and_the_token_stays_in_the_command(
    browser: Browser, api: ApiProcess, people: People, tmp_path: Path
) -> None:
    kubectl = people.kubectl
    put(kubectl, "trader", State.RUNNING)
    access = write_kubeconfig(kubectl.cluster, people.clerk, tmp_path / "clerk")
    words = [f"--server=http://127.0.0.1:{api.port}", f"--kubeconfig={access}", "--no-browser"]
    with page_command(*words, "-n", kubectl.namespace, folder=tmp_path) as process:
        link = wait_for(tmp_path / "said", LINK.pattern)
        with visiting(browser, link[1].rstrip("/")) as visitor:
            headers: list[str] = []
            visitor.page.on("request", lambda asked: headers.append(str(asked.all_headers())))
            visitor.page.goto(link[0])
            visitor.see("trader", "HEALTHY")
            assert link[2] not in visitor.page.url
            assert visitor.strange == []
            assert people.clerk not in "".join(headers)
            tell = "Pause"
            visitor.page.locator(visitor.row("trader")).click()
            visitor.page.get_by_role("button", name=tell, exact=True).click()
            visitor.page.get_by_role("dialog").get_by_role("button", name=tell).click()
            expect(visitor.page.get_by_role("button", name="Resume")).to_be_visible()
        with visiting(browser, link[1].rstrip("/")) as late:
            late.page.goto(link[0])
            expect(late.page.get_by_role("alert")).to_contain_text("was used already")
        commands = Path(f"/proc/{process.pid}/cmdline").read_text()
    assert kubectl.get("sup", "trader")["spec"]["operatingMode"] == "Paused"
    assert process.returncode == 0
    for place in ((tmp_path / "said").read_text(), commands, api.log):
        assert people.clerk not in place


def test_the_browser_is_opened_with_a_file_that_only_we_can_read(
    api: ApiProcess, people: People, tmp_path: Path
) -> None:
    stub = tmp_path / "stub"
    stub.write_text(BROWSER.format(folder=tmp_path))
    stub.chmod(0o700)
    access = write_kubeconfig(people.kubectl.cluster, people.clerk, tmp_path / "clerk")
    words = [f"--server=http://127.0.0.1:{api.port}", f"--kubeconfig={access}"]
    with page_command(*words, folder=tmp_path, BROWSER=f"{stub} %s"):
        argument = wait_for(tmp_path / "argument", r"file://\S+")[0]
        path = Path(unquote(urlsplit(argument).path))
        assert LINK.search(path.read_text())
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert "code=" not in (tmp_path / "said").read_text()
    assert not path.parent.exists()


def test_a_certificate_is_no_token_and_an_account_gives_short_lived_ones(
    browser: Browser, api: ApiProcess, people: People, tmp_path: Path
) -> None:
    kubectl = people.kubectl
    put(kubectl, "trader", State.RUNNING)
    access = f"--kubeconfig={kubectl.cluster.kubeconfig}"
    words = [f"--server=http://127.0.0.1:{api.port}", access, "--no-browser"]
    with page_command(*words, folder=tmp_path) as process:
        said = wait_for(tmp_path / "said", "error: .*")[0]
        assert "--account NAME" in said
        assert process.wait(20) == 1
    named = [*words, "-n", kubectl.namespace, "--account", "clerk"]
    with page_command(*named, folder=tmp_path):
        link = wait_for(tmp_path / "said", LINK.pattern)
        with visiting(browser, link[1].rstrip("/")) as visitor:
            visitor.page.goto(link[0])
            visitor.see("trader", "HEALTHY")


def test_the_way_is_a_port_forward_by_kubectl(
    api: ApiProcess, people: People, tmp_path: Path
) -> None:
    stub = tmp_path / "kubectl"
    stub.write_text(
        f'#!/bin/sh\necho "$@" > "{tmp_path}/argument"\n'
        f'echo "Forwarding from 127.0.0.1:{api.port} -> 8443"\nexec sleep 60\n'
    )
    stub.chmod(0o700)
    access = write_kubeconfig(people.kubectl.cluster, people.clerk, tmp_path / "clerk")
    path = f"{tmp_path}:{os.environ['PATH']}"
    with page_command(f"--kubeconfig={access}", "--no-browser", folder=tmp_path, PATH=path):
        wait_for(tmp_path / "said", LINK.pattern)
    asked = (tmp_path / "argument").read_text()
    assert "port-forward --address=127.0.0.1 svc/supervisor-api :8443" in asked
    assert people.clerk not in asked
    stub.write_text("#!/bin/sh\necho 'services \"supervisor-api\" not found' >&2\nexit 1\n")
    with page_command(f"--kubeconfig={access}", folder=tmp_path, PATH=path) as process:
        assert process.wait(20) == 1
    assert (
        'cannot be reached: services "supervisor-api" not found' in (tmp_path / "said").read_text()
    )
