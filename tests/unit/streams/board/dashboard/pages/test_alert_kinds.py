"""Each kind of alert has its words on the pages, and says what it compares with."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from tests.support.alerts import make_alert, send_alerts
from tests.support.dashboard_pages import Open
from tests.support.dashboard_site import Site
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.schemas.alert_rule import AlertRule, Watched
from traceweir.streams.board.dashboard.page.alert_view import WATCHED
from traceweir.streams.cli.alerts_rules import rule_in_words

ROSE = {"estimate": 0.2, "low": 0.02, "high": 0.31}


def test_pages_have_a_word_for_each_kind() -> None:
    assert tuple(WATCHED) == get_args(Watched)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        ({"what": "above_limit", "limit": 12.5}, ("Share above the limit of", "<dt>limit</dt><dd>12.5</dd>")),
        ({"what": "below_limit", "limit": 3.0}, ("Share below the limit of", "<dt>limit</dt><dd>3</dd>")),
        ({"what": "freshness", "interval_minutes": 15}, ("Freshness of", "<dd>15 minutes", "after 130 intervals")),
        ({"what": "category", "category": "<b>"}, ("Share of a category of", "<dt>category</dt><dd><bdi>&lt;b&gt;")),
    ],
)
async def test_the_page_says_what_values_are_compared_with(
    changes: dict[str, Any], texts: tuple[str, ...], tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW)
    send_alerts(site.store, make_alert(effect=ROSE, **changes))
    page = (await visit(site).get("/alerts")).text
    for text in (*texts, "rose", "+20.0 points", "Sessions since then"):
        assert text in page
    assert "<b>" not in page.split("<dt>category</dt>")[-1][:40]


@pytest.mark.parametrize("what", get_args(Watched))
def test_the_list_has_words_for_each_kind(what: Watched) -> None:
    more = {"category": "x\x1b", "direction": "rise"} if what == "category" else {}
    words = rule_in_words(AlertRule.model_validate({"id": "r", "what": what, **more}))
    assert words.startswith("r: ")
    assert "\x1b" not in words
