"""The pages of metrics name each metric once, and say which results are the worst."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.dashboard_pages import Open, judged_site
from tests.support.dashboard_site import HOSTILE, Site
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import open_store

pytestmark = pytest.mark.slow


async def test_the_charts_of_a_metric_are_of_one_judge_where_several_have_judged(tmp_path: Path, visit: Open) -> None:
    page = (await visit(judged_site(tmp_path)).get("/metric?metric=safety_v1")).text
    assert page.count("of the judge <bdi>openai/one</bdi> alone") == 2
    rates, means = re.findall(r'aria-label="Figures of the chart">(.*?)</table>', page, re.DOTALL)
    for figures, value in ((rates, "66.7"), (means, "0.667")):
        [row] = re.findall(r"<tr><td>(.*?)</tr>", figures, re.DOTALL)
        # Two of three verdicts of this judge, and not those of the other judge or of none.
        assert value in row
        assert row.endswith('<td class="r" data-label="results">3</td>')


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("latency", "the ten greatest values; lower is better"),
        ("completeness", "the ten lowest values; higher is better"),
        ("tool_call_count_v1", "no value is worse than another"),
        (f"our{HOSTILE}", "it is not known which values are worse"),
    ],
)
async def test_the_page_of_a_metric_says_which_results_are_the_worst(
    name: str, sentence: str, tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    site.add(*(make_score(f"s{number}", name, number / 4, threshold=None) for number in range(1, 4)))

    page = (await visit(site).get("/metric", params={"metric": name})).text

    assert sentence in page


async def test_the_page_of_a_metric_whose_values_are_all_on_the_threshold_says_why_no_result_is_the_worst(
    tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    site.add(*(make_score(f"s{number}", "our_tone", 1.0, threshold=1.0) for number in range(3)))

    page = (await visit(site).get("/metric", params={"metric": "our_tone"})).text

    assert "no value above or below its threshold says which side is better" in page


async def test_the_page_of_a_metric_without_a_value_leads_to_the_sessions_that_were_not_scored(
    tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    site.add(make_score("s0", "latency", None, threshold=None))

    page = (await visit(site).get("/metric", params={"metric": "latency"})).text

    assert 'href="/sessions?metric=latency&amp;status=NOT_EVALUATED"' in page


async def test_the_page_of_a_categorical_criterion_counts_its_answers(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    site.add(
        make_score("a", "topic", 1.0, category="<b>refund</b>"),
        make_score("b", "topic", 0.0, category="other"),
        make_score("c", "topic", 0.0, category="other"),
    )

    page = (await visit(site).get("/metric", params={"metric": "topic"})).text

    [table] = re.findall(r'aria-label="Answers, session">(.*?)</table>', page, re.DOTALL)
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", table, re.DOTALL)
    assert [re.findall(r"<bdi>(.*?)</bdi>", row) for row in rows] == [["other"], ["&lt;b&gt;refund&lt;/b&gt;"]]
    assert re.search(r'data-label="share">66\.7.%<', rows[0])


async def test_a_metric_has_its_name_once_with_the_level_of_sessions_first(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    turn: dict[str, Any] = {"level": "invocation", "invocation_id": "i", "result_id": "turn"}
    site.add(make_score("a", "match", 1.0, **turn), make_score("a", "match", 1.0), make_score("a", "other", 1.0))

    page = (await visit(site).get("/metrics")).text

    table = page[page.index("<tbody>") : page.index("</tbody>")]
    assert re.findall(r"<bdi>(\w+)</bdi>", table) == ["match", "other"]
    assert re.findall(r'<span class="dim">(session|invocation)</span>', table) == ["session", "invocation", "session"]
