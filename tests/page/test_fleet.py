"""The fleet as people on call see it: live, the worst first, and still there after an outage."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from playwright.sync_api import Browser, expect

from supervisor_operator.core.states import State
from tests.page.conftest import People
from tests.support.browser import Visitor, visiting
from tests.support.builders import a_supervisor
from tests.support.fleet import beating
from tests.support.health_stories import STORIES, told
from tests.support.kubectl import Kubectl
from tests.support.management import ApiProcess
from tests.support.operator import OperatorProcess
from tests.support.tokens import Admin

MARKUP = "<img src=x onerror=\"document.body.dataset.broken='yes'\">"
MANY = 2000
SUPERVISORS = "/apis/supervision.dev/v1alpha1/namespaces/{}/supervisors"


def put(kubectl: Kubectl, name: str, state: State, **spec: object) -> None:
    """An agent whose status is that of a story, as the operator would have written it."""
    kubectl.create(a_supervisor(name, **spec))
    tell(kubectl, name, state)


def tell(kubectl: Kubectl, name: str, state: State) -> None:
    status = told(STORIES[state]()).item["status"] | {"observedGeneration": 1}
    patch = json.dumps({"status": status})
    kubectl("patch", "sup", name, "--subresource=status", "--type=merge", "-p", patch)


def test_a_frozen_agent_changes_its_row_and_a_restart_is_ordered_without_reload(
    visitor: Visitor, people: People, operator: OperatorProcess
) -> None:
    del operator
    kubectl, page = people.kubectl, visitor.page
    kubectl.create(
        a_supervisor(
            "trader",
            heartbeat={"intervalSeconds": 1},
            restart={"onUnresponsive": "MarkOnly"},
        )
    )
    kubectl.wait_status("trader", podName="trader-r1")
    with beating(kubectl, ["trader-r1"], 0.5) as fleet:
        visitor.sign_in(people.clerk, kubectl.namespace)
        visitor.see("trader", "HEALTHY", "HeartbeatFresh", "ACTIVE")
        page.evaluate("document.body.dataset.mine = 'yes'")
        fleet.freeze("trader-r1")
        visitor.see("trader", "UNHEALTHY", "UNRESPONSIVE", "No heartbeat from pod trader-r1")
        visitor.see("trader", "Find out why it hangs, then restart it")
        page.locator(visitor.row("trader")).click()
        expect(page.locator(".pulse .missed").nth(2)).to_be_attached()
        expect(page.locator(".legend")).to_contain_text("missed")
        expect(page.get_by_role("group", name="Events")).to_contain_text("Unresponsive")
        page.get_by_role("button", name="Restart", exact=True).click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("does not count against its restart budget")
        dialog.get_by_role("button", name="Restart").click()
        expect(dialog).to_be_hidden()
        expect(page.locator(".facts")).to_contain_text("trader-r2")
        expect(page.get_by_role("group", name="Events")).to_contain_text("Restarted")
    page.get_by_role("link", name="Fleet", exact=True).click()
    visitor.see("trader", "run 2")
    assert page.evaluate("document.body.dataset.mine") == "yes", "it was never loaded again"
    assert kubectl.get("sup", "trader")["spec"]["restartRequest"] == "restart of run 1"


def test_the_powerless_are_refused_in_the_words_of_the_api(
    visitor: Visitor, people: People
) -> None:
    page = visitor.page
    put(people.kubectl, "trader", State.RUNNING)
    visitor.sign_in(people.guest)
    expect(page.locator(".notice")).to_contain_text("cannot list resource")
    page.get_by_label("Namespace").fill(people.kubectl.namespace)
    page.get_by_label("Namespace").press("Enter")
    page.locator(visitor.row("trader")).click()
    expect(page.locator("[aria-labelledby=events]")).to_contain_text("cannot list resource")
    for order in ("Pause", "Stop", "Restart"):
        page.get_by_role("button", name=order, exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name=order).click()
        refusal = page.get_by_role("dialog").get_by_role("alert")
        expect(refusal).to_contain_text('cannot patch resource "supervisors"')
        page.keyboard.press("Escape")
    assert people.kubectl.get("sup", "trader")["spec"]["operatingMode"] == "Running"
    page.get_by_role("button", name="Sign out").click()
    visitor.sign_in("not.a.token")
    expect(page.get_by_role("alert")).to_contain_text("Unauthorized")


def test_the_connection_is_lost_and_what_happened_meanwhile_is_caught_up_with(
    browser: Browser, api_access: Path, people: People, tmp_path: Path
) -> None:
    kubectl = people.kubectl
    put(kubectl, "trader", State.RUNNING)
    put(kubectl, "clerk", State.RUNNING)
    api = ApiProcess(api_access, tmp_path / "api.log")
    api.start()
    try:
        with visiting(browser, f"http://127.0.0.1:{api.port}") as visitor:
            visitor.sign_in(people.clerk, kubectl.namespace)
            visitor.see("trader", "HEALTHY")
            expect(visitor.page.locator("#connection")).to_have_text("Live")
            api.stop()
            expect(visitor.page.locator("#lost")).to_contain_text("Connection lost")
            visitor.see("trader", "HEALTHY")
            tell(kubectl, "trader", State.FAILED)
            kubectl("delete", "sup", "clerk")
            api = ApiProcess(api_access, tmp_path / "again.log", f"--port={api.port}")
            api.start()
            visitor.see("trader", "UNHEALTHY", "RestartBudgetExhausted", "Read its last words")
            expect(visitor.page.locator(visitor.row("clerk"))).to_have_count(0)
            expect(visitor.page.locator("#connection")).to_have_text("Live")
            expect(visitor.page.locator("#lost")).to_be_hidden()
    finally:
        api.stop()


def test_what_an_agent_calls_itself_is_text(visitor: Visitor, people: People) -> None:
    kubectl, page = people.kubectl, visitor.page
    put(kubectl, "trader", State.FAILED, description=MARKUP)
    end = {"lastTermination": {"message": MARKUP, "exitCode": 3, "podName": "trader-r1"}}
    patch = json.dumps({"status": end})
    kubectl("patch", "sup", "trader", "--subresource=status", "--type=merge", "-p", patch)
    visitor.sign_in(people.clerk, kubectl.namespace)
    page.locator(visitor.row("trader")).click()
    expect(page.locator(".description")).to_have_text(MARKUP)
    expect(page.locator("[aria-labelledby=end] pre")).to_have_text(MARKUP)
    page.get_by_text("YAML", exact=True).click()
    expect(page.get_by_label("YAML", exact=True)).to_contain_text("onerror")
    assert page.locator("main img").count() == 0
    assert page.evaluate("document.body.dataset.broken") is None


def test_filters_live_in_the_address_and_the_token_nowhere(
    visitor: Visitor, people: People, api: ApiProcess
) -> None:
    kubectl, page = people.kubectl, visitor.page
    for name, state in (
        ("well", State.RUNNING),
        ("ill", State.FAILED),
        ("hung", State.UNRESPONSIVE),
    ):
        put(kubectl, name, state)
    visitor.sign_in(people.clerk, kubectl.namespace)
    names = page.locator(".rows b")
    expect(names).to_have_text(["ill", "hung", "well"])
    page.get_by_role("button", name="FAILED", exact=False).click()
    expect(names).to_have_text(["ill"])
    expect(page.locator(".shown")).to_have_text("1 of 3 agents")
    address = page.url
    assert address.endswith(f"#/?namespace={kubectl.namespace}&phase=FAILED")
    page.reload()
    visitor.page.get_by_label("Kubernetes token").fill(people.clerk)
    page.get_by_role("button", name="Sign in").click()
    expect(names).to_have_text(["ill"])
    assert page.url == address
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_label("Search").fill("no heartbeat")
    expect(names).to_have_text(["hung"])
    kept = page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])")
    for place in (page.url, kept, page.content(), api.log, *visitor.asked):
        assert people.clerk not in place
    assert page.context.cookies() == []
    fields = page.evaluate("[...document.querySelectorAll('input')].map(one => one.value).join()")
    assert people.clerk not in fields


def test_keys_lead_through_the_list(visitor: Visitor, people: People) -> None:
    page = visitor.page
    for name in ("a", "b", "c"):
        put(people.kubectl, name, State.RUNNING)
    visitor.sign_in(people.clerk, people.kubectl.namespace)
    expect(page.locator(".rows li")).to_have_count(3)
    page.locator("body").press("/")
    expect(page.get_by_label("Search")).to_be_focused()
    for key, name in (("ArrowDown", "a"), ("ArrowDown", "b"), ("End", "c"), ("Home", "a")):
        page.keyboard.press(key)
        expect(page.locator(f"{visitor.row(name)} a")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("a")
    expect(page.locator("main")).to_be_focused()


def seed(kubectl: Kubectl, count: int) -> None:
    """Agents that nobody runs."""
    path = SUPERVISORS.format(kubectl.namespace)

    def make(start: int) -> None:
        with Admin(kubectl) as admin:
            for number in range(start, count, 8):
                made = admin.ask("POST", path, a_supervisor(f"agent-{number:04}"))
                assert made.status == 201, made.message

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(make, range(8)))


def test_two_thousand_agents_scroll(visitor: Visitor, people: People) -> None:
    kubectl, page = people.kubectl, visitor.page
    seed(kubectl, MANY)
    visitor.sign_in(people.clerk, kubectl.namespace)
    expect(page.locator(".shown")).to_have_text("2,000 agents")
    rows = page.locator(".rows li")
    assert rows.count() < 60, "only what is in sight exists"
    expect(page.locator(visitor.row("agent-0000"))).to_be_visible()
    page.locator(".rows a").first.press("End")
    last = page.locator(visitor.row(f"agent-{MANY - 1}"))
    expect(last.locator("a")).to_be_focused()
    assert last.get_attribute("aria-posinset") == last.get_attribute("aria-setsize") == "2000"
    page.evaluate("scrollTo(0, document.body.scrollHeight / 2)")
    expect(page.locator(visitor.row("agent-1000"))).to_be_in_viewport()
    assert rows.count() < 60
    tell(kubectl, "agent-1999", State.FAILED)
    page.evaluate("scrollTo(0, 0)")
    expect(rows.first).to_contain_text("agent-1999")
