"""The overview counts what came, what it cost and what got worse, and each number leads to its sessions."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
from tests.support.dashboard_pages import Open
from tests.support.dashboard_site import HOSTILE, Site, session_of
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, open_store

from traceweir.schemas.dead_letter import DeadLetter
from traceweir.schemas.judge_config import Budget

pytestmark = pytest.mark.slow


async def test_the_pass_rate_of_the_overview_is_that_of_criteria_with_a_threshold(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    site.add(
        *(make_score(f"s{number}", "token_usage_v1", 900.0, threshold=None) for number in range(6)),
        *(make_score(f"s{number}", value=number / 3) for number in range(4)),
    )

    page = (await visit(site).get("/")).text

    (rate,) = re.findall(r'Pass rate, criteria with a threshold</span><span class="v">(.*?)</span>', page)
    assert rate == "25.0 %"


async def test_a_session_counts_once_in_the_pass_rate_of_the_overview(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    turns = (
        make_score(
            f"s{session}", value=1.0, level="invocation", invocation_id=f"i{turn}", result_id=f"s{session}-turn{turn}"
        )
        for session in range(4)
        for turn in range(5)
    )
    site.add(*turns, *(make_score(f"s{session}", value=float(session == 0)) for session in range(4)))

    page = (await visit(site).get("/")).text

    (rate,) = re.findall(r'Pass rate, criteria with a threshold</span><span class="v">(.*?)</span>', page)
    assert rate == "25.0 %"


async def test_rates_that_are_not_tested_are_not_among_those_that_did_not_fall(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(hours=1))
    for hours in (0, 1):
        at = NOW + timedelta(hours=hours, minutes=-1)
        sessions = [f"{hours}-{number}" for number in range(12)]
        site.add(*(make_score(each, value=1.0, occurred_at=at) for each in sessions))
        turn: dict[str, Any] = {"level": "invocation", "invocation_id": "i", "occurred_at": at}
        site.add(*(make_score(each, value=1.0, result_id=f"{each}-turn", **turn) for each in sessions))

    page = (await visit(site).get("/?span=1h")).text

    assert "of 1 rates 0 fell and 0 rose beyond chance" in page


async def test_the_overview_names_records_that_were_deleted_before_they_were_read(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW)
    site.add_sessions(1)
    view = "/"
    before = (await visit(replace(site, now=NOW + timedelta(minutes=1))).get(view)).text
    problem = "40 offsets of traceweir.traces/1 were never read"
    letter = DeadLetter("missed", problem, "assemble", "traceweir.traces", 1, 49, None, None, timestamp=-1)
    site.store.write(batch_of("dead-letters", FakeRecord(None, headers=letter.wire_headers())))
    site.now += timedelta(minutes=1)

    assert "deleted by Kafka before they were read" not in before
    assert "deleted by Kafka before they were read" in (await visit(site).get(view)).text
    assert problem in (await visit(site).get("/dead-letters")).text


async def test_the_overview_links_each_number_to_its_sessions(site: Site, visit: Open) -> None:
    client = visit(site)
    page = (await client.get("/?environment=staging")).text
    (failed,) = re.findall(r'href="([^"]*)" aria-label="(\d+) failed results of tool_trajectory_avg_score"', page)
    link = failed[0].replace("&amp;", "&")

    assert parse_qs(urlsplit(link).query) == {
        "environment": ["staging"],
        "metric": ["tool_trajectory_avg_score"],
        "status": ["FAILED"],
    }
    assert f">{failed[1]} session" in (await client.get(link)).text


async def test_a_config_or_agent_version_that_is_new_in_the_span_is_marked(site: Site, visit: Open) -> None:
    page = (await visit(site).get("/")).text

    assert "New in this time range:" in page
    assert "rail-agent 2.4.0" in page


async def test_the_overview_splits_the_cost_of_judges_by_metric(site: Site, visit: Open) -> None:
    page = (await visit(site).get("/?span=7d")).text
    judges = page[page.index('id="judges"') :]
    judges, by_day = judges[: judges.index("</section>")].split("By day")

    assert re.findall(r'<td class="r"[^>]*>([$][^<]*)</td>', by_day) == ["$ 0.0084", "$ 0.02"]
    assert re.findall(r"<bdi>(\w+)</bdi>", judges) == ["hallucinations_v1"]
    assert re.findall(r'<td class="r"[^>]*>([^<]*)</td>', judges) == [
        "60",
        "48\u202f000",
        "3\u202f600",
        "$ 0.02",
        "100 %",
        "–",
    ]
    assert "left today" not in page


@pytest.mark.parametrize(
    ("budget", "left"),
    [
        (Budget(usd_per_day=0.05), "$ 0.04 of $ 0.05 left today"),
        (Budget(usd_per_day=0.001), "$ 0 of $ 0.001 left today"),
        (Budget(tokens_per_day=100_000), "81\u202f940 of 100\u202f000 tokens left today"),
        (Budget(usd_per_minute=1), None),
    ],
)
async def test_the_overview_says_what_is_left_of_the_daily_budget(
    budget: Budget, left: str | None, site: Site, visit: Open
) -> None:
    page = (await visit(replace(site, budget=budget)).get("/")).text

    assert re.findall(r"[^>]*left today", page) == ([left] if left else [])


async def test_the_funnel_begins_with_records_where_the_store_knows_them(
    site: Site, tmp_path_factory: pytest.TempPathFactory, visit: Open
) -> None:
    scores_only = Site(open_store(tmp_path_factory.mktemp("scores") / "store.duckdb"), now=NOW + timedelta(minutes=1))
    scores_only.add(make_score("a"))
    known, unknown = (await visit(site).get("/?span=7d")).text, (await visit(scores_only).get("/")).text

    # A bar of records would need another scale than those of sessions and traces below it.
    assert '<th scope="row">records of these sessions</th><td></td>' in known
    assert (await visit(site).get("/api/overview?since=2026-01-01T00:00:00Z")).json()["coverage"]["records"] == 60 * 10
    assert "records of these sessions" not in unknown
    assert "This begins with closed sessions: the store does not know their records." in unknown


@pytest.mark.parametrize(
    ("before", "now", "older", "shown"),
    [
        (40, 60, True, "+50.0 % (+0.5 % to +123.8 %) against 40 before"),
        (3, 60, True, "– (3 before)"),
        (40, 60, False, "– before: the time range before is not stored as a whole"),
    ],
)
async def test_the_change_of_the_number_of_sessions_has_its_interval_or_is_a_dash(
    before: int, now: int, older: bool, shown: str, tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    ends = [NOW] * now + [NOW - timedelta(days=1)] * before + [NOW - timedelta(days=3)] * older
    closed = [session_of(number, ended, is_new=False) for number, ended in enumerate(ends)]
    site.store.write(batch_of("sessions", *(FakeRecord(orjson.dumps(each), n) for n, each in enumerate(closed))))

    assert shown in (await visit(site).get("/")).text


async def test_what_got_worse_is_first_and_opens_a_filled_comparison(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    about: dict[str, Any] = {"agent_name": "bot", "environment": f"e{HOSTILE}"}
    for version, age_h, passed in (("1", 5, 38), ("2", 2, 20)):
        at = NOW - timedelta(hours=age_h)
        site.add(
            *(
                make_score(f"{version}-{n}", value=float(n < passed), agent_version=version, occurred_at=at, **about)
                for n in range(40)
            )
        )
    client = visit(site)

    page = (await client.get("/")).text

    assert page.index("What got worse") < page.index("Sessions</span>")
    assert "−45.0 points" in page
    assert "<script>document" not in page
    link = unescape(re.findall(r'href="(/compare\?[^"]*)">compare', page)[0])
    compared = (await client.get(link)).text
    assert "−45.0 points" in compared
    assert "95.0 %" in compared
    listed = unescape(re.findall(r'href="(/sessions\?[^"]*)">sessions', page)[0])
    assert ">20 sessions" in (await client.get(listed)).text


async def test_a_span_has_whole_minutes(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=5))
    site.add(*(make_score(f"s{at}", occurred_at=NOW + timedelta(seconds=at)) for at in (10, 50, 70)))

    answer = await visit(site).get("/api/overview?since=2026-01-31T12:00:30Z&until=2026-01-31T12:00:40Z")

    assert (answer.json()["since"], answer.json()["until"]) == ("2026-01-31T12:00:00Z", "2026-01-31T12:01:00Z")
    assert [each["results"] for each in answer.json()["metrics"]] == [2]


async def test_dead_letters_are_a_share_of_all_records_and_not_a_full_bar(site: Site, visit: Open) -> None:
    page = (await visit(site).get("/?span=7d")).text

    row = page[page.index(">dead letters</a></th>") :]
    assert float(re.findall(r'class="fill" width="([0-9.]+)"', row)[0]) < 1
    assert "dead letters: of 600 records or results" in page


@pytest.mark.parametrize(
    ("versions", "sentence"),
    [(12, None), (14, "Only the latest 12 of 14 times at which something was new are compared")],
)
async def test_the_overview_says_that_only_the_latest_changes_are_compared(
    versions: int, sentence: str | None, tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    for number in range(versions):
        at = NOW - timedelta(minutes=5 * (number + 1))
        site.add(
            make_score(f"s{number}", occurred_at=at, agent_version=f"v{number}", model=None, config_digest="first")
        )
    site.add(make_score("before", occurred_at=NOW - timedelta(hours=30), config_digest="first"))
    page = (await visit(site).get("/")).text
    assert (sentence or "What got worse") in page
    assert ("Only the latest" in page) == (sentence is not None)


async def test_an_outage_of_a_judge_is_named_on_the_overview_and_leads_to_what_has_no_value(
    tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    for minute in range(-40, 0):
        is_down = -25 <= minute < -20
        missing: dict[str, Any] = {"value": None, "not_evaluated_because": "error"} if is_down else {"value": 1.0}
        at = NOW + timedelta(minutes=minute)
        site.add(*(make_score(f"s{minute}-{each}", occurred_at=at, **missing) for each in range(4)))
    client = visit(site)

    for address in ("/?span=1h", "/metric?metric=response_match_score&span=1h"):
        page = (await client.get(address)).text
        assert "Without a value:" in page
        (link,) = re.findall(r'<a href="([^"]*)" aria-label="20 results of response_match_score without', page)
        assert '"without_values": []' not in unescape(page)
        parameters = parse_qs(urlsplit(unescape(link)).query)
        assert parameters["since"] == ["2026-01-31T11:35:00Z"]
        assert parameters["until"] == ["2026-01-31T11:40:00Z"]
        assert "20 results" in (await client.get(unescape(link))).text


async def test_one_record_is_no_records(site: Site, visit: Open) -> None:
    for behind, words in ((1, "1 record behind"), (2, "2 records behind")):
        state = replace(site.state, behind=behind)
        assert words in (await visit(replace(site, state=state)).get("/")).text


async def test_an_address_that_is_not_there_is_named(site: Site, visit: Open) -> None:
    assert "there is no address /nowhere" in (await visit(site).get("/nowhere")).text
    assert (await visit(site).get("/api/v1/nowhere")).json() == {"detail": "there is no address /api/v1/nowhere"}
