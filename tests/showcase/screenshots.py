"""`python -m tests.showcase.screenshots`: the page's pictures in docs/, of agents that really ran.

A cluster whose pods are pretended, the operator, the management API, a browser. Agents beat, one
hangs and is restarted, others cannot be saved; nothing of what is shown is written by hand.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, expect

from tests.cluster.places import CHECKOUT
from tests.cluster.ways import open_cluster
from tests.support.browser import Scheme, Visitor, open_browser, visiting
from tests.support.builders import AGENT, a_supervisor, a_team
from tests.support.fleet import Fleet, beating
from tests.support.install import install, operator_kubeconfig
from tests.support.kubectl import Kubectl
from tests.support.management import (
    allow_everything,
    api_kubeconfig,
    install_api,
    make_account,
    serving,
)
from tests.support.operator import OperatorProcess

PICTURES = CHECKOUT / "docs" / "images"
SIZE = (1280, 800)
INTERVAL = 2
NONE = {"source": "None"}
BEATS = {"intervalSeconds": INTERVAL}
STEADY = ("crawler", "importer", "ledger", "notifier", "pricer", "summariser", "translator")
HUNG, LEFT = "pricer", "importer"


@dataclass(frozen=True, slots=True)
class Scene:
    kubectl: Kubectl
    browser: Browser
    base: str
    token: str


def main() -> int:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, _scene(Path(folder)) as scene:
        _people(scene.kubectl)
        with beating(scene.kubectl, [f"{name}-r1" for name in STEADY], INTERVAL / 2) as fleet:
            _let_one_hang(scene, fleet)
            for scheme in ("light", "dark"):
                _take(scene, scheme)
    for path in sorted(PICTURES.glob("page-*.png")):
        print(f"{path.relative_to(CHECKOUT)}  {path.stat().st_size // 1024} KiB")
    return 0


@contextmanager
def _scene(folder: Path) -> Iterator[Scene]:
    with open_cluster("fake") as cluster, open_browser() as browser:
        install(cluster)
        install_api(cluster)
        kubectl = Kubectl(cluster, "shop")
        kubectl("create", "namespace", kubectl.namespace)
        token = make_account(kubectl, "viewer")
        allow_everything(kubectl, "viewer")
        access = operator_kubeconfig(cluster, folder)
        flag = f"--namespace={kubectl.namespace}"
        with (
            OperatorProcess(access, folder / "operator.log", flag),
            serving(api_kubeconfig(cluster, folder), folder) as api,
        ):
            yield Scene(kubectl, browser, f"http://127.0.0.1:{api.port}", token)


def _people(kubectl: Kubectl) -> None:
    for name in STEADY:
        remedy = "MarkOnly" if name == LEFT else "Restart"
        kubectl.create(
            a_supervisor(
                name,
                description=f"The {name} of the shop",
                heartbeat=BEATS,
                restart={"onUnresponsive": remedy, "delaySeconds": 2},
            )
        )
    kubectl.create(a_supervisor("desk", heartbeat=NONE))
    kubectl.create(a_supervisor("night-shift", heartbeat=NONE, operatingMode="Stopped"))
    kubectl.create(a_supervisor("clerk", heartbeat=NONE, parentRef={"name": "desk"}))
    members = [_member("lead", role="LEAD"), _member("scout", replicas=2)]
    leader = {"name": "desk"}
    kubectl.create(
        a_team("research", objective="Find the leak", supervisorRef=leader, members=members)
    )
    for name, parent in (("trader", "desk"), ("probe", "clerk")):
        kubectl.create(_doomed(name, parent))
    kubectl.wait("supteam/research", "jsonpath={.status.phase}=ACTIVE")
    kubectl.wait_status("trader", phase="FAILED")
    kubectl.patch("clerk", {"operatingMode": "Paused"})
    for name in STEADY:
        kubectl.wait_status(name, podName=f"{name}-r1")


def _member(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "template": {"agent": AGENT, "heartbeat": NONE}} | more


def _doomed(name: str, parent: str) -> dict[str, Any]:
    """Its pods end with exit code 3 as soon as they run."""
    exits = {"metadata": {"labels": {"fake.test/exit-code": "3"}}}
    template = exits | {"spec": {"containers": [{"name": "agent", "image": "localhost/a:1"}]}}
    budget = {"maxRestarts": 1, "delaySeconds": 1}
    return a_supervisor(
        name,
        agent={"template": template},
        heartbeat=NONE,
        restart=budget,
        parentRef={"name": parent},
    )


def _let_one_hang(scene: Scene, fleet: Fleet) -> None:
    with visiting(scene.browser, scene.base) as visitor:
        _open(visitor, scene, HUNG)
        expect(visitor.page.locator(".pulse .beat").nth(25)).to_be_attached(timeout=60_000)
        fleet.freeze(f"{HUNG}-r1", f"{LEFT}-r1")
        scene.kubectl.wait_status(HUNG, podName=f"{HUNG}-r2")
        fleet.join(f"{HUNG}-r2")
        expect(visitor.page.locator(".pulse .beat").nth(55)).to_be_attached(timeout=60_000)
        scene.kubectl.wait_status(LEFT, health="UNRESPONSIVE")


def _take(scene: Scene, scheme: Scheme) -> None:
    with visiting(scene.browser, scene.base, scheme=scheme, size=SIZE) as visitor:
        page = visitor.page
        _open(visitor, scene, HUNG)
        expect(page.locator(".legend")).to_contain_text("missed")
        page.screenshot(path=PICTURES / f"page-agent-{scheme}.png")
        page.get_by_role("link", name="Fleet", exact=True).click()
        visitor.see("trader", "RestartBudgetExhausted")
        page.screenshot(path=PICTURES / f"page-fleet-{scheme}.png")
        page.get_by_role("link", name="Tree and teams").click()
        expect(page.locator(".tree")).to_contain_text("Find the leak")
        page.screenshot(path=PICTURES / f"page-tree-{scheme}.png")


def _open(visitor: Visitor, scene: Scene, name: str) -> None:
    visitor.sign_in(scene.token, path=f"#/agents/{scene.kubectl.namespace}/{name}")
    expect(visitor.page.locator(".facts")).to_contain_text(name)


if __name__ == "__main__":
    sys.exit(main())
