"""The comparison names its sides, and says which differences are more than chance."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.dashboard_pages import COMPARISON, Open, Tags
from tests.support.dashboard_site import HOSTILE, SECRET, Site
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.streams.board.dashboard.content import Content
from traceweir.streams.board.store import diff as diff_module

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("other", "is_said"), [("two", True), ("one", False), (None, False)])
async def test_a_comparison_of_different_judges_says_so(
    other: str | None, is_said: bool, tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    site.add(
        make_score("a", "safety_v1", 1.0, judge="one", agent_version="1"),
        make_score("b", "safety_v1", 0.0, judge=other, agent_version="2"),
    )
    query = "?first_agent_version=1&second_agent_version=2"

    page = (await visit(site).get(f"/compare{query}")).text

    assert ("different judges" in page) == is_said


async def test_a_comparison_says_which_differences_are_more_than_chance(
    tmp_path_factory: pytest.TempPathFactory, visit: Open
) -> None:
    site = Site(open_store(tmp_path_factory.mktemp("versions") / "store.duckdb"), now=NOW + timedelta(minutes=1))
    site.add(
        *(make_score(f"{version}-{at}", value=1.0 if at < passed else 0.0, agent_version=version, result_id=f"{version}-{at}")
          for version, passed in (("1", 90), ("2", 60)) for at in range(100))
    )  # fmt: skip
    page = (await visit(site).get("/compare?first_agent_version=1&second_agent_version=2")).text

    assert '<span class="bad">−30.0 points</span>' in page
    assert "−40.8 to −18.3" in page


@pytest.mark.parametrize(
    ("content", "has_secret", "has_reason"), [("full", True, True), ("redacted", False, True), ("none", False, False)]
)
async def test_flips_show_both_reasons_as_far_as_is_configured(
    content: Content, has_secret: bool, has_reason: bool, tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1), content=content)
    before = NOW - timedelta(days=2)
    site.add(*(make_score(f"s{n}", value=0.9, occurred_at=before, rationale=f"before {SECRET}") for n in range(12)))
    site.add(*(make_score(f"s{n}", value=0.1, result_id=f"{n}", rationale=HOSTILE) for n in range(12)))
    query = f"first_since={before:%Y-%m-%dT%H:%M:%SZ}&first_until={NOW - timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"

    page = (await visit(site).get(f"/compare?{query}")).text

    assert "0.900 PASSED to 0.100 FAILED (needs &gt;= 0.75)" in page
    assert "12 pairs" in page
    assert '<span class="bad">−100.0 points</span></td><td class="r dim nowrap" data-label="interval">–' in page
    assert "12 sessions are on both sides" in page
    assert (SECRET in page, "&lt;script&gt;" in page) == (has_secret, has_reason)
    assert "<script>document" not in page


async def test_too_many_results_for_pairs_are_said_and_the_sides_are_compared(
    tmp_path: Path, visit: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diff_module, "MAX_RESULTS", 11)
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    site.add(*(make_score(f"s{n}", value=0.9, judge="one") for n in range(12)))
    site.add(*(make_score(f"s{n}", value=0.1, judge="two", result_id=f"{n}") for n in range(12)))

    page = (await visit(site).get("/compare?first_judge=one&second_judge=two")).text

    assert "the first side has more than 11 results" in page
    assert '<span class="bad">−100.0 points</span>' in page


async def test_the_former_page_of_pairs_leads_to_the_one_comparison(site: Site, visit: Open) -> None:
    answer = await visit(site).get("/diff?first_agent_version=2.3.1")
    assert (answer.status_code, answer.headers["location"]) == (308, "/compare?first_agent_version=2.3.1")


async def test_a_comparison_names_its_sides_and_says_that_two_versions_have_no_pairs(site: Site, visit: Open) -> None:
    page = (await visit(site).get(COMPARISON)).text
    assert "<bdi>agent version 2.4.0</bdi> minus <bdi>agent version 2.3.1</bdi>" in page
    assert "No session is on both sides, so there are no pairs." in page


async def test_the_result_of_a_comparison_is_before_its_form(site: Site, visit: Open) -> None:
    page = (await visit(site).get(COMPARISON)).text

    assert page.index('id="differences"') < page.index('action="/compare" class="card"')


async def test_compare_opens_on_the_last_two_versions_of_an_agent(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    empty = (await visit(site).get("/compare")).text
    assert "No side has a result" in empty
    assert "2026-01-30 12:01:00 to 2026-01-31 12:01:00 UTC</bdi> minus <bdi>2026-01-29 12:01:00" in empty
    assert "Both sides are the same" in (await visit(site).get("/compare?first_model=m&second_model=m")).text
    for age, (agent, version) in enumerate([("a", "3"), ("b", "9"), ("a", "2"), ("a", "1")]):
        at = NOW - timedelta(minutes=10 * age)
        site.add(make_score(f"s{age}", agent_name=agent, agent_version=version, occurred_at=at))

    page = Tags((await visit(site).get("/compare")).text)

    given = {found.get("name"): found.get("value") for tag, found in page.found if tag == "input"}
    assert (given["first_agent_version"], given["second_agent_version"]) == ("2", "3")
    assert (given["first_agent_name"], given["second_agent_name"]) == ("a", "a")
    chosen = (await visit(site).get("/compare?first_agent_version=1&second_agent_version=")).text
    given = {found.get("name"): found.get("value") for tag, found in Tags(chosen).found if tag == "input"}
    assert (given["first_agent_version"], given["second_agent_version"]) == ("1", "")
