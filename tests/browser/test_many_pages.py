"""Any number of pages of one browser are told of new figures: they share a stream, or ask for the state."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from tests.support.dashboard_site import Site, served
from tests.support.results import make_score
from tests.support.stores import open_store

from traceweir.streams.board.dashboard.live import MAX_STREAMS

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGES = 12
"""Twice the connections that Chromium opens to one host."""
HOST = "dashboard.example"
"""A name that Chromium resolves to this machine. A page of plain http with such a name is no secure context."""
TOKEN = "a-token-of-20-letters"
SESSIONS = "/sessions?metric=response_match_score"


@contextmanager
def windows(chromium: Browser, address: str, count: int, *scripts: str) -> Iterator[list[Page]]:
    """Yields pages of one fresh profile at an address, each of which runs the scripts first."""
    context = chromium.new_context()
    blocked: list[str] = []
    context.on("console", lambda message: blocked.append(message.text) if "Content Security" in message.text else None)
    context.on("weberror", lambda error: blocked.append(str(error.error)))
    for script in scripts:
        context.add_init_script(script)
    _log_in(context, address)
    try:
        pages = []
        for _ in range(count):
            page = context.new_page()
            page.goto(address + SESSIONS)
            pages.append(page)
        yield pages
    finally:
        context.close()
    assert not blocked


def _log_in(context: BrowserContext, address: str) -> None:
    if HOST not in address:
        return
    page = context.new_page()
    page.goto(address)
    page.get_by_label("token").fill(TOKEN)
    page.get_by_role("button", name="Open").click()
    page.get_by_text("Overview").first.wait_for()
    page.close()


def add(site: Site, session_id: str) -> None:
    site.add(make_score(session_id))
    site.tell()


def wait_until(page: Page, holds: Callable[[], bool]) -> None:
    while not holds():  # pytest's timeout ends it
        page.wait_for_timeout(50)


def hold_all_streams(site: Site) -> list[AsyncGenerator[None, None]]:
    """Lets as many browsers listen as the dashboard tells, and returns their streams."""

    async def hold() -> list[AsyncGenerator[None, None]]:
        streams = [site.live.changes() for _ in range(MAX_STREAMS)]
        for each in streams:
            await anext(each)
        return streams

    assert site.loop is not None
    return asyncio.run_coroutine_threadsafe(hold(), site.loop).result(10)


def test_twelve_pages_of_a_browser_are_all_told(chromium: Browser, fresh: tuple[Site, str]) -> None:
    site, address = fresh
    with windows(chromium, address, PAGES) as pages:
        for page in pages:
            page.evaluate("window.kept = true")
        add(site, "second")

        for page in pages:
            page.get_by_role("link", name="second").wait_for()
            page.get_by_text("up to date").wait_for()
            assert page.evaluate("window.kept")


def test_twelve_pages_of_a_host_name_over_plain_http_share_one_stream(chromium: Browser, tmp_path: Path) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), token=TOKEN)
    site.now += timedelta(minutes=1)  # a span does not contain its end
    with (
        served(site) as address,
        windows(chromium, f"http://{HOST}:{urlsplit(address).port}", PAGES) as pages,
    ):
        add(site, "second")

        for page in pages:
            page.get_by_role("link", name="second").wait_for()
            assert not page.evaluate("window.isSecureContext")
        assert site.live.streams == 1


def test_a_browser_without_shared_workers_asks_for_the_state(chromium: Browser, fresh: tuple[Site, str]) -> None:
    site, address = fresh
    with windows(chromium, address, PAGES, "delete window.SharedWorker") as pages:
        add(site, "second")

        for page in pages:
            page.get_by_role("link", name="second").wait_for()
        assert site.live.streams == 0


def test_a_browser_whose_shared_worker_does_not_load_asks_for_the_state(
    chromium: Browser, fresh: tuple[Site, str]
) -> None:
    site, address = fresh
    broken = "const Worker = SharedWorker; window.SharedWorker = class extends Worker { constructor() { super('/nothing.js'); } };"
    with windows(chromium, address, 1, broken) as (page,):
        add(site, "second")

        page.get_by_role("link", name="second").wait_for()


def test_a_browser_that_cannot_listen_asks_and_listens_when_it_can(chromium: Browser, fresh: tuple[Site, str]) -> None:
    site, address = fresh
    held = hold_all_streams(site)
    with windows(chromium, address, 1) as (page,):
        add(site, "second")
        page.get_by_role("link", name="second").wait_for()
        page.get_by_text("up to date").wait_for()
        assert site.live.full
        assert site.loop is not None
        asyncio.run_coroutine_threadsafe(held.pop().aclose(), site.loop).result(10)

        wait_until(page, lambda: site.live.full)
        add(site, "third")
        page.get_by_role("link", name="third").wait_for()


def test_a_page_says_that_the_dashboard_has_ended(chromium: Browser, tmp_path: Path) -> None:
    with ExitStack() as serving:
        address = serving.enter_context(served(Site(open_store(tmp_path / "store.duckdb"))))
        with windows(chromium, address, 1) as (page,):
            page.get_by_text("up to date").wait_for()
            serving.close()

            page.get_by_text("the dashboard does not answer").wait_for()


def test_a_page_says_that_the_dashboard_stands_still(chromium: Browser, fresh: tuple[Site, str]) -> None:
    site, address = fresh
    with windows(chromium, address, 1) as (page,):
        page.get_by_text("up to date").wait_for()
        goes_on = threading.Event()
        assert site.loop is not None
        site.loop.call_soon_threadsafe(goes_on.wait, 60)
        try:
            page.get_by_text("the dashboard does not answer").wait_for()
            page.get_by_text("unknown: no state was received").wait_for()
        finally:
            goes_on.set()
        page.get_by_text("up to date").wait_for()
