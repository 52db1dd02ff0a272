"""The page of anchors fits on a phone, and axe finds nothing serious, with anchors and without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import pytest
from tests.browser.test_dashboard import serious_findings
from tests.support.anchors import standing_of
from tests.support.dashboard_site import HOSTILE, Site, served
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.streams.board.dashboard.anchor_look import AnchorStanding

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[tuple[Site, str]]:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW)
    with served(site) as address:
        yield site, f"{address}/anchors"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("standing", [standing_of(NOW, judge=HOSTILE), AnchorStanding(problem="no broker answers")])
def test_anchors_fit_on_a_phone_and_axe_finds_nothing(
    standing: AnchorStanding, scheme: Literal["light", "dark"], page: Page, shown: tuple[Site, str]
) -> None:
    site, address = shown
    site.anchors = standing
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme=scheme)
    page.goto(address)
    assert page.title() == "Anchors · Traceweir"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert serious_findings(page) == []
