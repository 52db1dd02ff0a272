"""A person finds an alert on the chart and on the overview, and goes on from there in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, get_args

import pytest
from tests.browser.test_dashboard import serious_findings
from tests.support.alerts import make_alert, send_alerts
from tests.support.dashboard_site import Site
from tests.support.results import make_score
from tests.support.scoring import NOW

from traceweir.schemas.alert import AlertStream
from traceweir.streams.board.dashboard.watched_streams import KnownStreams, ShownStream, StreamState

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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_where_and_what_is_watched_fit_on_a_phone_and_axe_finds_nothing(
    scheme: Literal["light", "dark"], page: Page, fresh: tuple[Site, str]
) -> None:
    site, address = fresh
    alert = make_alert()
    for after in (False, True):
        for number in range(100):
            begin = alert.onset.latest if after else alert.onset.earliest - timedelta(hours=2)
            is_rail = number % 2 == 0
            site.add(
                make_score(
                    f"{after}-{number}",
                    alert.stream.metric,
                    float(number % 10 > 0 and not (after and is_rail)),
                    occurred_at=begin + timedelta(minutes=number / 2),
                    app_name="rail" if is_rail else "shop",
                )
            )
    send_alerts(site.store, alert)
    site.watched = KnownStreams(NOW, "Kafka is away", [*watched(alert.stream)])
    page.set_viewport_size({"width": 390, "height": 800})
    page.emulate_media(color_scheme=scheme)
    for path, region in (
        (f"/alerts?alert_id={alert.alert_id}", "Slices that carry the change"),
        ("/alerts", "Watched streams"),
    ):
        page.goto(address + path)
        assert page.get_by_role("region", name=region).get_by_role("row").count() > 1
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert serious_findings(page) == []


def watched(stream: AlertStream) -> Iterator[ShownStream]:
    """Yields a stream in each state."""
    for state in get_args(StreamState):
        yield ShownStream(
            rule="any-pass-rate-drops",
            what="pass_rate",
            category=None,
            stream=stream,
            state=state,
            baseline=0.9,
            rhythm="weekend and hour",
            limit=None,
            interval_minutes=None,
            sessions_a_day=1_440.5,
            findable_in_a_day=0.031 if state == "raised" else None,
        )
