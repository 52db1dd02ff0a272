"""A page says from when on its data is stored where the chosen time range begins earlier."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.dashboard_pages import Open
from tests.support.dashboard_site import Site
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.streams.board.dashboard.retention import Retention

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("days", "begins"),
    [
        (2, []),
        (40, ["texts of sessions"]),
        (100, ["texts of sessions", "results"]),
        (500, ["texts", "results", "figures"]),
    ],
)
@pytest.mark.parametrize("view", ["/", "/sessions", "/dead-letters"])
async def test_a_time_range_beyond_what_is_stored_says_from_when_on_it_is(
    view: str, days: int, begins: list[str], site: Site, visit: Open
) -> None:
    kept = Retention(texts=timedelta(days=30), results=timedelta(days=90), figures=timedelta(days=400))
    since = (NOW - timedelta(days=days)).strftime("%Y-%m-%dT%H:%MZ")
    page = (await visit(replace(site, retention=kept)).get(view, params={"since": since})).text
    found = re.findall(r'<span title="TRACEWEIR_STORE_\w+">(.*?) are stored from <time [^>]*>(.*?)<', page)
    assert [what.startswith(name) for (what, _), name in zip(found, begins, strict=True)] == [True] * len(begins)
    oldest = [site.now - age for age in (kept.texts, kept.results, kept.figures)]
    assert [at for _, at in found] == [f"{at:%Y-%m-%d %H:%M:%S}" for at in oldest[: len(begins)]]


async def test_a_time_range_of_the_days_that_are_kept_is_stored_whole(site: Site, visit: Open) -> None:
    kept = Retention(texts=timedelta(days=30), results=timedelta(days=30), figures=timedelta(days=30))
    assert "are stored from" not in (await visit(replace(site, retention=kept)).get("/?span=30d")).text


async def test_a_session_without_its_record_says_from_when_on_texts_are_stored(tmp_path: Path, visit: Open) -> None:
    kept = Retention(texts=timedelta(days=30), results=timedelta(days=90), figures=timedelta(days=400))
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW, retention=kept)
    site.add(make_score("s1"))
    page = (await visit(site).get("/session?session_id=s1")).text
    assert f"Texts are stored from {NOW - kept.texts:%Y-%m-%d %H:%M:%S} UTC on." in page
