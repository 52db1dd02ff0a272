"""With 1,000,000 results the pages answer, and a filter finds what it names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from tests.support.dashboard_site import Site, served
from tests.support.full_store import BEGIN, END, fill
from tests.support.stores import open_store

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RESULTS = 1_000_000
MONTH = {"since": BEGIN.isoformat(), "until": END.isoformat()}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = tmp_path_factory.mktemp("store") / "store.duckdb"
    fill(file, RESULTS)
    with served(Site(open_store(file), now=END)) as address:
        yield address


def test_the_overview_counts_every_result_of_a_month(page: Page, address: str) -> None:
    page.goto(f"{address}/?{urlencode(MONTH)}")
    page.get_by_text("up to date").wait_for()
    assert page.locator("canvas").count() > 0
    api = page.request.get(f"{address}/api/overview?{urlencode(MONTH)}").json()
    assert sum(each["results"] for each in api["metrics"]) == RESULTS


def test_a_filter_of_sessions_and_a_session_answer(page: Page, address: str) -> None:
    page.goto(f"{address}/sessions?{urlencode(MONTH)}")
    page.get_by_label("metric", exact=True).fill("completeness")
    page.get_by_label("status").select_option("FAILED")
    page.get_by_role("button", name="Find").click()
    page.wait_for_url("**status=FAILED**")
    rows = page.locator("a[href^='/session?']")
    assert rows.count() == 50
    page.get_by_role("link", name="Show 500").click()
    page.wait_for_url("**limit=500**")
    assert rows.count() == 500

    rows.nth(407).click()

    page.get_by_role("heading", name="Scores").wait_for()
    assert page.locator("article.score").count() == 6
