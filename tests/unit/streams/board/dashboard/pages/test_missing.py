"""The pages of what was not scored and of dead letters name the causes and lead to the sessions."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.dashboard_pages import Open, Tags
from tests.support.dashboard_site import Site
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import open_store, scores_batch

pytestmark = pytest.mark.slow


async def test_what_was_not_scored_is_grouped_by_cause_with_its_number(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    causes = ("judge_truncated", "judge_truncated", "judge_refused")
    missing: dict[str, Any] = {"value": None, "not_evaluated_because": "error"}
    site.store.write(
        scores_batch(*[make_score(f"s{number}", cause=cause, **missing) for number, cause in enumerate(causes)])
    )

    page = (await visit(site).get("/not-scored")).text
    session = (await visit(site).get("/session?session_id=s2")).text

    groups = re.findall(r'<span class="s n">(.*?)</span><a [^>]*>(.*?)</a>', page)
    assert groups == [("error: judge truncated", "2 results"), ("error: judge refused", "1 result")]
    assert "raise `judge.max_output_tokens`" in page
    assert "not scored: error: judge refused" in session
    assert "loosen the filter" in session


async def test_each_row_of_what_was_not_scored_opens_the_sessions_that_it_counts(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    rows = {
        ("safety_v1", "error", "judge_truncated"): ["a", "b"],
        ("safety_v1", "error", "judge_refused"): ["c"],
        ("safety_v1", "error", None): ["d"],
        ("safety_v1", "budget", None): ["e"],
        ("hallucinations_v1", "error", "judge_refused"): ["a", "f"],
    }
    site.add(
        *[
            make_score(name, metric, None, not_evaluated_because=reason, cause=cause)
            for (metric, reason, cause), names in rows.items()
            for name in names
        ]
    )

    page = Tags((await visit(site).get("/not-scored")).text)
    links = [each["href"] or "" for tag, each in page.found if tag == "a" and "/sessions?" in (each.get("href") or "")]
    opened = [re.findall(r'/session\?session_id=(\w+)"', (await visit(site).get(link)).text) for link in links]

    assert sorted(sorted(found) for found in opened) == sorted(rows.values())


async def test_a_dead_letter_is_shown_with_its_place_and_its_reason(site: Site, visit: Open) -> None:
    page = (await visit(site).get("/dead-letters")).text

    assert "not json" in page
    assert "<bdi>traceweir.traces</bdi>:1:7" in page


@pytest.mark.parametrize("view", ["/not-scored", "/dead-letters"])
async def test_what_is_missing_has_a_chart(view: str, site: Site, visit: Open) -> None:
    page = (await visit(site).get(f"{view}?span=7d")).text
    assert 'class="chart"' in page
    assert 'aria-label="Figures of the chart"' in page
