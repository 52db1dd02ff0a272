"""A person finds an alert on the chart and on the overview, and goes on from there in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.alerts import make_alert, send_alerts
from tests.support.dashboard_site import Site

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RED_PIXELS = """canvas => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let red = 0;
  for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 35 && data[at] > data[at + 1] + 40) red += 1;
  return red;
}"""
"""Counts the pixels of a canvas in the colour of an alert, and of what it shades: steps without a score are paler."""


def test_the_chart_of_the_metric_has_a_mark_where_the_alert_says(page: Page, fresh: tuple[Site, str]) -> None:
    site, address = fresh
    page.goto(f"{address}/metric?metric=response_match_score")
    chart = page.locator(".chart canvas").first
    before = chart.evaluate(RED_PIXELS)

    send_alerts(site.store, make_alert())
    page.goto(f"{address}/metric?metric=response_match_score")
    chart = page.locator(".chart canvas").first
    # A dashed line over the height of the chart, its name, and the shaded interval.
    assert chart.evaluate(RED_PIXELS) > before + 1_000


def test_from_the_overview_to_the_alert_to_the_comparison(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("region", name="What got worse").get_by_role("link", name="alert", exact=True).first.click()
    page.wait_for_url("**/alerts?alert_id=*")
    assert page.get_by_role("article").count() == 1
    assert page.title() == "Alerts · Traceweir"
    page.get_by_role("link", name="Compare before and after").click()
    page.wait_for_url("**/compare?*first_since=*")
    assert page.get_by_role("region", name="Differences").get_by_role("row").count() > 1
