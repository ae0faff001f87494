"""Debian's Chromium without a screen, and the page in it as a person sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.cluster.packages import need_browser

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 20_000.0
Scheme = Literal["light", "dark"]
WIDE, PHONE = (1360, 860), (390, 844)


@contextmanager
def open_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Headless and with a profile of its own, both by playwright itself.
        browser = playwright.chromium.launch(executable_path=need_browser(), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass(slots=True)
class Visitor:
    """Somebody who looks at the page; what the browser asks for and complains of is noted."""

    page: Page
    base: str
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def sign_in(self, token: str, namespace: str = "", path: str = "") -> None:
        self.page.goto(f"{self.base}/{path}")
        self.page.get_by_label("Kubernetes token").fill(token)
        self.page.get_by_label("Namespace").fill(namespace)
        self.page.get_by_role("button", name="Sign in").click()

    def row(self, name: str) -> str:
        """How to find the row of an agent."""
        return f'.rows li:has(b:text-is("{name}"))'

    def see(self, name: str, *words: str) -> None:
        for text in words:
            expect(self.page.locator(self.row(name))).to_contain_text(text)

    @property
    def strange(self) -> list[str]:
        """Requests that left the origin."""
        home = urlsplit(self.base).netloc
        return [url for url in self.asked if urlsplit(url).netloc != home]


@contextmanager
def visiting(
    browser: Browser, base: str, *, scheme: Scheme = "light", size: tuple[int, int] = WIDE
) -> Iterator[Visitor]:
    expect.set_options(timeout=PATIENCE)
    context = browser.new_context(
        color_scheme=scheme,
        viewport={"width": size[0], "height": size[1]},
        reduced_motion="reduce",
        locale="en-GB",
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    found = Visitor(page, base)
    page.on("request", lambda request: found.asked.append(request.url))
    page.on("console", lambda said: found.complaints.append(said.text))
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    try:
        yield found
    finally:
        context.close()
