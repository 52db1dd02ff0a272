"""Each kind of alert has its words on the pages, and says what it compares with."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any, get_args

import pytest
from tests.support.alerts import make_alert, send_alerts
from tests.support.dashboard_pages import Open
from tests.support.dashboard_site import Site
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.schemas.alert_rule import AlertRule, Watched
from traceweir.streams.board.dashboard.page.alert_view import WATCHED
from traceweir.streams.cli.alerts_rules import rule_in_words

ROSE = {"estimate": 0.2, "low": 0.02, "high": 0.31}
FELL = {"estimate": -0.2, "low": -0.31, "high": -0.02}


def test_pages_have_a_word_for_each_kind() -> None:
    assert tuple(WATCHED) == get_args(Watched) == tuple(KINDS)


WORST_FIRST = "Sessions since then, the worst first"
KINDS: dict[Watched, tuple[dict[str, Any], str, tuple[str, ...], str]] = {
    "pass_rate": ({"effect": FELL}, "Pass rate", (), "Failed sessions since then"),
    "mean": ({"effect": FELL}, "Mean", (), WORST_FIRST),
    "not_evaluated": ({"effect": ROSE}, "Share not scored", (), "Sessions not scored since then"),
    "above_limit": (
        {"effect": ROSE, "limit": 12.5}, "Share above the limit 12.5", ("<dt>limit</dt><dd>12.5</dd>",), WORST_FIRST
    ),
    "below_limit": (
        {"effect": ROSE, "limit": 3.0}, "Share below the limit 3", ("<dt>limit</dt><dd>3</dd>",), WORST_FIRST
    ),
    "category": (
        {"effect": FELL, "category": "<b>"},
        "Share of the category <bdi>&lt;b&gt;</bdi>",
        ("<dt>category</dt><dd><bdi>&lt;b&gt;</bdi></dd>",),
        "Sessions since then",
    ),
    "freshness": (
        {"effect": FELL, "interval_minutes": 15}, "Freshness", ("<dd>15 minutes", "after 130 intervals"),
        "Sessions since then",
    ),
}  # fmt: skip
"""Fields of an alert of each kind, its name, what its facts contain, and the link to its sessions."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site with an open alert of each kind, of a metric of its own."""
    site = Site(open_store(tmp_path_factory.mktemp("store") / "store.duckdb"), now=NOW)
    alerts = [make_alert(f"of-{what}", what=what, **fields) for what, (fields, *_) in KINDS.items()]
    send_alerts(site.store, *alerts)
    site.add(*(make_score("s", each.stream.metric, 1.0, occurred_at=NOW - timedelta(minutes=5)) for each in alerts))
    return site


@pytest.mark.slow
@pytest.mark.parametrize("what", KINDS)
async def test_each_page_has_the_words_of_each_kind(what: Watched, site: Site, visit: Open) -> None:
    fields, words, facts, listed = KINDS[what]
    metric = f"of-{what}"
    client = visit(site)
    page = (await client.get(f"/alerts?metric={metric}")).text
    moved = "rose" if fields["effect"] is ROSE else "fell"
    change = ("+" if moved == "rose" else "\N{MINUS SIGN}") + ("0.2<" if what == "mean" else "20.0 points<")
    usual = "usual: 0.9<" if what == "mean" else "usual: 90.0 %<"
    for text in (*facts, f"<b>{words} of <a", f"</a> {moved}</b>", change, usual, f">{listed}</a>"):
        assert text in page, text
    sessions = unescape(re.findall(f'href="([^"]*)">{listed}</a>', page)[0])
    assert (await client.get(sessions)).status_code == 200

    small = words[0].lower() + words[1:]
    overview = (await client.get("/")).text
    row = next(each for each in overview.split("<tr") if 'class="s f"' in each and f"<bdi>{metric}</bdi>" in each)
    assert change in row
    assert ("130 intervals" if what == "freshness" else "130 sessions") in row
    assert what in ("pass_rate", "mean") or f", {small}</span>" in row
    charted = (await client.get(f"/metric?metric={metric}")).text
    assert f">{small} of <bdi>{metric}</bdi> {moved}</a>" in charted


@pytest.mark.parametrize("what", get_args(Watched))
def test_the_list_has_words_for_each_kind(what: Watched) -> None:
    more = {"category": "x\x1b", "direction": "rise"} if what == "category" else {}
    words = rule_in_words(AlertRule.model_validate({"id": "r", "what": what, **more}))
    assert words.startswith("r: ")
    assert "\x1b" not in words
