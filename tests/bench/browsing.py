"""`python -m tests.bench.browsing`: how soon the page shows a large fleet, and a change of it.

One cluster, the management API, Chromium. Times are the browser's own: from the click on Sign in to
the frame with the rows, and from the API server's answer to a write to the change of the row.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright

from supervisor_operator.clock import wall_clock
from supervisor_operator.core.states import State
from supervisor_operator.kube.cluster import SUPERVISORS
from tests.bench.api import MERGE, Api, open_api, path_of
from tests.bench.management import NAMESPACE, fill
from tests.bench.say import BenchError, say
from tests.cluster.packages import need_browser
from tests.cluster.ways import open_cluster
from tests.support.browser import FLAGS, WIDE
from tests.support.health_stories import STORIES, told
from tests.support.kubeconfig import read_kubeconfig
from tests.support.kubectl import Kubectl
from tests.support.management import (
    allow_everything,
    api_kubeconfig,
    install_api,
    make_account,
    serving,
    write_kubeconfig,
)

FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
SIGN_IN = """(token) => new Promise((done) => {
    document.getElementById('token').value = token;
    const started = performance.now();
    const look = () => document.querySelector('.rows li')
        ? requestAnimationFrame(() => done([performance.now() - started,
            document.querySelector('.shown').textContent]))
        : requestAnimationFrame(look);
    document.querySelector('form button').click();
    look();
})"""
WATCH = """(words) => { window.shownAt = new Promise((done) => {
    new MutationObserver((_, observer) => {
        if (!document.querySelector('.rows').textContent.includes(words)) return;
        observer.disconnect();
        done(performance.timeOrigin + performance.now());
    }).observe(document.querySelector('.rows'), { childList: true, subtree: true });
}); }"""


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=need_browser(), args=FLAGS)
        yield browser
        await browser.close()


async def run(options: argparse.Namespace, folder: Path) -> None:
    with open_cluster("control") as cluster:
        install_api(cluster)
        kubectl = Kubectl(cluster, NAMESPACE)
        kubectl("create", "namespace", NAMESPACE)
        token = make_account(kubectl, "reader")
        allow_everything(kubectl, "reader")
        access = read_kubeconfig(write_kubeconfig(cluster, token, folder / "reader"), folder)
        with serving(api_kubeconfig(cluster, folder), folder) as process:
            async with open_api(access) as api, browsing() as browser:
                names = await fill(api, options.agents)
                base = f"http://127.0.0.1:{process.port}"
                await play(options, api, browser, base=base, token=token, name=names[0])


async def play(  # noqa: PLR0913 - one for each part of the scene
    options: argparse.Namespace, api: Api, browser: Browser, *, base: str, token: str, name: str
) -> None:
    opened, listed = [], []
    for _ in range(options.visits):
        page = await browser.new_page(viewport={"width": WIDE[0], "height": WIDE[1]})
        first, shown = await visit(page, base, token, options.agents)
        opened.append(first)
        listed.append(shown)
        if len(listed) < options.visits:
            await page.close()
    late = [await change(page, api, name, number) for number in range(options.changes)]
    print(f"{options.agents} agents, Chromium {browser.version}, {options.visits} visits")
    print(line("page opened to its first paint", opened))
    print(line("signed in to the painted list", listed))
    print(line(f"write answered to the row changed, {options.changes} changes", late))


async def visit(page: Page, base: str, token: str, count: int) -> tuple[float, float]:
    await page.goto(f"{base}/#/?namespace={NAMESPACE}")
    await page.get_by_label("Kubernetes token").wait_for()
    first: float = await page.evaluate(FIRST_PAINT)
    shown, words = await page.evaluate(SIGN_IN, token)
    if words != f"{count:,} agents":
        raise BenchError(f"the page shows {words}")
    return first, shown


async def change(page: Page, api: Api, name: str, number: int) -> float:
    """Milliseconds; the first agent gets worse and better, so that its row moves too."""
    words = f"change {number}."
    await page.evaluate(WATCH, words)
    state = State.FAILED if number % 2 else State.RUNNING
    status = told(STORIES[state]()).item["status"] | {"observedGeneration": 1}
    for one in status["conditions"]:
        one["message"] = words if one["type"] == "Ready" else one["message"]
    path = path_of(SUPERVISORS, NAMESPACE, name, "status")
    await api.must("PATCH", path, {"status": status}, MERGE)
    written = wall_clock().timestamp() * 1000
    shown: float = await page.evaluate("window.shownAt")
    return max(0.0, shown - written)


def line(name: str, times: Sequence[float]) -> str:
    return f"{name:<52} p50 {statistics.median(times):5.0f} ms   most {max(times):5.0f} ms"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.browsing", description=__doc__)
    parser.add_argument("--agents", type=int, default=2000, help="how many (%(default)d)")
    parser.add_argument("--visits", type=int, default=5, help="to the page (%(default)d)")
    parser.add_argument("--changes", type=int, default=20, help="of one agent (%(default)d)")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        try:
            asyncio.run(run(options, Path(folder)))
        except (BenchError, TimeoutError) as error:
            print(f"bench: {error or 'not done in time'}", file=sys.stderr)
            return 1
    say("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
