"""Tree and teams; whether everybody can use the page; its pure parts; how it is served."""

from __future__ import annotations

import importlib.resources
import json
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from supervisor_operator.core.states import State
from tests.page.conftest import People
from tests.page.test_fleet import put
from tests.support.browser import PHONE, WIDE, Scheme, Visitor, visiting
from tests.support.builders import AGENT, a_supervisor, a_team
from tests.support.management import ApiProcess, Caller
from tests.support.operator import OperatorProcess

NONE = {"source": "None"}
AXE = (importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text()
SERIOUS = {"serious", "critical"}


def member(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "template": {"agent": AGENT, "heartbeat": NONE}} | more


def test_tree_and_team_show_who_is_above_whom_and_who_left(
    visitor: Visitor, people: People, operator: OperatorProcess
) -> None:
    del operator
    kubectl, page = people.kubectl, visitor.page
    kubectl.create(a_supervisor("desk", heartbeat=NONE))
    members = [member("lead", role="LEAD"), member("scout"), member("temp")]
    kubectl.create(
        a_team("crew", objective="find the leak", supervisorRef={"name": "desk"}, members=members)
    )
    exits = {"metadata": {"labels": {"fake.test/exit-code": "3"}}}
    template = exits | {"spec": {"containers": [{"name": "agent", "image": "localhost/a:1"}]}}
    kubectl.create(
        a_supervisor(
            "weak",
            agent={"template": template},
            heartbeat=NONE,
            restart={"maxRestarts": 0},
            parentRef={"name": "desk"},
        )
    )
    visitor.sign_in(people.clerk, kubectl.namespace, "#/tree")
    desk = page.locator(f'[data-key="agent {kubectl.namespace} desk"]')
    expect(desk).to_contain_text("below UNHEALTHY")
    expect(desk).to_contain_text("find the leak")
    expect(desk).to_contain_text("3/3 ready")
    patch = json.dumps({"spec": {"members": members[:2]}})
    kubectl("patch", "supteam", "crew", "--type=merge", "-p", patch)
    desk.get_by_role("link", name="crew", exact=True).click()
    expect(page.get_by_role("group", name="Who left")).to_contain_text("crew-temp")
    expect(page.locator(".facts")).to_contain_text("crew-lead")
    page.get_by_role("group", name="Members").get_by_role("link", name="crew-scout").click()
    expect(page.locator(".facts")).to_contain_text("crew")
    expect(page.locator(".legend")).to_have_count(0)


@pytest.mark.parametrize(
    ("scheme", "size"), [("light", WIDE), ("dark", PHONE)], ids=["light and wide", "dark phone"]
)
def test_everybody_can_use_it(
    browser: Browser, api: ApiProcess, people: People, scheme: Scheme, size: tuple[int, int]
) -> None:
    kubectl = people.kubectl
    for name, state in (("well", State.RUNNING), ("ill", State.FAILED), ("new", State.STARTING)):
        put(kubectl, name, state)
    put(kubectl, "hung", State.MARKED, parentRef={"name": "well"})
    with visiting(browser, f"http://127.0.0.1:{api.port}", scheme=scheme, size=size) as visitor:
        page = visitor.page
        page.goto(visitor.base)
        expect(page.get_by_label("Kubernetes token")).to_be_focused()
        check(visitor)
        visitor.sign_in(people.clerk, kubectl.namespace)
        expect(page.locator(".rows li")).to_have_count(4)
        check(visitor)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= size[0], "nothing to be scrolled sideways"
        page.locator(visitor.row("hung")).click()
        expect(page.locator(".facts")).to_contain_text("left")
        check(visitor)
        page.get_by_role("button", name="Stop", exact=True).click()
        check(visitor)
        page.keyboard.press("Escape")
        page.get_by_role("link", name="Tree and teams").click()
        expect(page.locator(".tree")).to_contain_text("hung")
        check(visitor)


def check(visitor: Visitor) -> None:
    visitor.page.evaluate(AXE)
    found = visitor.page.evaluate("axe.run()")
    serious = [
        (one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"])
        for one in found["violations"]
        if one["impact"] in SERIOUS
    ]
    assert serious == []


NODE = "(key, above, level) => ({key, above, level, namespace: 'n', name: key, isAgent: true})"
PAIRS = "[['HEALTHY', 'b'], ['UNHEALTHY', 'c'], ['HEALTHY', 'a']]"
SAME = f"{PAIRS}.map(([level, name]) => ({{level, name}}))"


@pytest.mark.parametrize(
    ("module", "script", "result"),
    [
        ("words", "[0, 59, 60, 130, 3600, 90061].map(m.age)", "0s 59s 1m 2m 10s 1h 1d 1h"),
        ("words", "m.age(-3)", "0s"),
        ("words", "m.writeAddress('', {q: 'a b', team: '', level: 'X'})", "#/?q=a+b&level=X"),
        ("words", "m.readAddress('#/agents/shop/a%20b').name", "a b"),
        ("words", "m.readAddress('#/?q=a+b').filter.q", "a b"),
        ("words", "m.readFrames('event: x\\ndata: 1\\n\\n: still\\n\\neve').frames.length", "1"),
        ("words", "m.readFrames('event: x\\ndata: 1\\n\\neve').rest", "eve"),
        ("fleet", "m.inSight(560, 280, 56, 100, 2)", "8 17"),
        ("fleet", "m.inSight(-100, 280, 56, 3, 2)", "0 3"),
        ("fleet", f"{SAME}.sort(m.worstFirst).map(one => one.name)", "c a b"),
        ("fleet", f"m.choose({SAME}, {{q: 'A'}}).map(one => one.name)", "a"),
        ("fleet", f"Object.entries(m.tally({SAME}, 'level'))", "HEALTHY,2 UNHEALTHY,1"),
    ],
)  # fmt: skip
def test_the_parts_that_only_think(visitor: Visitor, module: str, script: str, result: str) -> None:
    visitor.page.goto(visitor.base)
    found = visitor.page.evaluate(f"import('/{module}.js').then(m => [{script}].flat().join(' '))")
    assert found == result


def test_an_older_change_is_no_news_and_one_removed_is_gone(visitor: Visitor) -> None:
    visitor.page.goto(visitor.base)
    found = visitor.page.evaluate(
        """import('/fleet.js').then(({ Fleet }) => {
            const fleet = new Fleet();
            const one = (phase) => ({ id: '1', name: 'a', phase });
            fleet.replace({ version: 5, supervisors: [one('ACTIVE')] });
            const told = (type, version, phase) =>
                Boolean(fleet.apply({ type, version, supervisor: one(phase) }));
            const said = [told('SupervisorUpdated', 4, 'FAILED'), fleet.agents.get('1').phase,
                told('SupervisorStateChanged', 6, 'FAILED'), fleet.agents.get('1').phase,
                told('SupervisorRemoved', 7, 'FAILED'), fleet.agents.size];
            return said.join(' ');
        })"""
    )
    assert found == "false ACTIVE true FAILED true 0"


def test_the_worst_below_rises_and_a_circle_has_an_end(visitor: Visitor) -> None:
    visitor.page.goto(visitor.base)
    found = visitor.page.evaluate(
        f"""import('/fleet.js').then(({{ grow }}) => {{
            const node = {NODE};
            const roots = grow([node('a', '', 'HEALTHY'), node('b', 'a', 'HEALTHY'),
                node('c', 'b', 'UNHEALTHY'), node('x', 'y', 'HEALTHY'), node('y', 'x', 'HEALTHY')]);
            return roots.map((one) => [one.key, one.worst, one.counts.UNHEALTHY || 0]).join(' ');
        }})"""
    )
    assert found.split()[0] == "a,UNHEALTHY,1"
    assert len(found.split()) == 3


def test_how_it_is_served(api: ApiProcess) -> None:
    caller = Caller(api.port)
    answer = caller.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "unsafe" not in policy
    assert "set-cookie" not in answer.headers
    assert answer.headers["cache-control"] == "no-cache"
    script = caller.get("/main.js")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert caller.get("/main.js", **{"If-None-Match": script.headers["etag"]}).status == 304
    assert b"<script>" not in answer.body
    assert b"style=" not in answer.body
    assert caller.get("/../app.py").status == 404
