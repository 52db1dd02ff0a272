"""The page of alerts and the API show the streams that are watched, as they were read a while ago, and why they are not."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.dashboard_site import HOSTILE, Site
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.schemas.alert_rule import DEFAULT_ALERT_RULE, AlertRule
from traceweir.streams.board.dashboard import watched_streams
from traceweir.streams.board.dashboard.page.routers.alerts import MOST_STREAMS
from traceweir.streams.board.dashboard.watched_streams import (
    KnownStreams,
    ShownStreams,
    known_streams,
    with_problem,
)
from traceweir.streams.tools.alerts.rule_stream import StreamReport
from traceweir.streams.tools.alerts.state_reports import ReportedStream
from traceweir.streams.tools.alerts.watched_scores import StreamName

pytestmark = pytest.mark.slow
STREAMS_PATH = "/api/v1/alert-streams"
SLOW = AlertRule(id="slow", what="above_limit", limit=30, by=("app_name",))
CATEGORY = AlertRule(id="category", what="category", category=HOSTILE, direction="rise")


def reported(
    metric: str = "helpful", rule: AlertRule = DEFAULT_ALERT_RULE, finds: float | None = 0.05, **fields: Any
) -> ReportedStream:
    given: dict[str, Any] = {
        "stream": StreamName(metric, "session", fields.pop("slice", ())),
        "state": "watched",
        "sessions_a_day": 1_440.0,
        "baseline": 0.9,
        "rhythm": None,
        "findable_in_a_day": finds,
        "limit": None,
        "interval_minutes": None,
    }
    return ReportedStream(rule, StreamReport(**given | fields))


STREAMS = [
    reported("fine", rhythm="weekend and hour"),
    reported("worse", finds=0.2),
    reported("blind", finds=None),
    reported("new", state="learning", finds=0.01, baseline=None),
    reported("rare", state="sparse", finds=None),
    reported("fell", state="raised", finds=0.01),
    reported("mean", AlertRule(id="m", what="mean"), finds=0.011),
    reported("seconds", SLOW, limit=30.0, finds=0.01, slice=(("app_name", ""),)),
    reported(HOSTILE, CATEGORY, finds=0.009, slice=(("labels.tenant", HOSTILE),)),
]
FOUND = known_streams(STREAMS, NOW)


def rows(page: str) -> list[str]:
    table = page.partition('aria-label="Watched streams">')[2].partition("</table>")[0].partition("<tbody>")[2]
    return [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", row)).strip() for row in table.split("</tr>")[:-1]]


async def asked(site: Site, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(site.application())
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4180") as client:
        return await client.request(method, path, headers={"accept": "text/html"} | headers)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(open_store(tmp_path / "store.duckdb"), now=NOW, watched=FOUND)


async def test_the_table_begins_with_alerts_and_what_can_find_the_least(site: Site) -> None:
    page = (await asked(site, "/alerts")).text
    assert "Watched: 9" in page
    assert "more stream" not in page
    assert "2026-01-31 12:00:00" in page
    found = rows(page)
    for row, words in zip(
        found,
        (
            "fell session, pass rate any-pass-rate-drops raised 90.0 % 1 440 1.0 points and more",
            "rare session, pass rate any-pass-rate-drops too few sessions 90.0 % 1 440 learning",
            "new session, pass rate any-pass-rate-drops learning – 1 440 learning",
            "blind session, pass rate any-pass-rate-drops watched 90.0 % 1 440 no change",
            "worse session, pass rate any-pass-rate-drops watched 90.0 % 1 440 20.0 points and more",
            "fine session, pass rate any-pass-rate-drops watched 90.0 % by weekend and hour 1 440 5.0 points and more",
            "mean session, mean m watched 0.9 1 440 0.011 and more",
            "seconds session, share above the limit 30 no app slow watched 90.0 % 1 440 1.0 points and more",
        ),
        strict=False,
    ):
        assert row == words
    assert len(found) == 9
    assert "share of the category" in found[-1]
    assert "<script>document" not in page
    only = (await asked(site, "/alerts?metric=worse")).text
    assert [row.split()[0] for row in rows(only)] == ["worse"]
    assert "Watched: 1 " in only
    assert "No stream of this metric is watched." in (await asked(site, "/alerts?metric=nothing")).text


async def test_the_api_has_the_streams_and_the_page_of_one_alert_does_not(site: Site) -> None:
    answer = await asked(site, STREAMS_PATH)
    assert ShownStreams.model_validate_json(answer.text) == FOUND.part(limit=50)
    assert [each["stream"]["metric"] for each in answer.json()["streams"]][:2] == ["fell", "rare"]
    assert answer.json()["streams"][2]["findable_in_a_day"] is None
    assert answer.headers["x-total-count"] == "9"
    assert "link" not in answer.headers
    assert "Watched" not in (await asked(site, "/alerts?alert_id=x")).text


@pytest.mark.parametrize(
    ("query", "metrics"),
    [
        ("metric=worse", ["worse"]),
        ("state=learning", ["new"]),
        ("rule=m", ["mean"]),
        ("rule=m&state=raised", []),
        ("offset=7&limit=1", ["seconds"]),
        ("offset=9", []),
    ],
)
async def test_the_api_selects_streams(query: str, metrics: list[str], site: Site) -> None:
    answer = await asked(site, f"{STREAMS_PATH}?{query}")
    assert [each["stream"]["metric"] for each in answer.json()["streams"]] == metrics
    assert answer.headers["x-total-count"] == str(answer.json()["total"])


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=100000", "offset=-1", "offset=1e9", "state=no", "span=7d", "rule="]
)
async def test_the_api_refuses_what_it_does_not_have(query: str, site: Site) -> None:
    answer = await asked(site, f"{STREAMS_PATH}?{query}")
    assert answer.status_code == 422
    assert query.split("=")[0] in answer.json()["detail"]


async def test_the_api_answers_the_head_of_an_answer_and_only_one_who_may_read(site: Site) -> None:
    site.token = "a-token-of-the-dashboard"
    assert (await asked(site, STREAMS_PATH)).status_code == 401
    with_token = {"authorization": f"Bearer {site.token}"}
    head = await asked(site, STREAMS_PATH, "HEAD", **with_token)
    whole = await asked(site, STREAMS_PATH, **with_token)
    assert (head.status_code, head.content) == (200, b"")
    for name in ("x-total-count", "content-type", "cache-control"):
        assert head.headers[name] == whole.headers[name], name
    assert (await asked(site, STREAMS_PATH, "POST", **with_token)).status_code == 405


async def test_of_many_streams_the_page_has_those_that_find_the_least_and_the_api_has_all(site: Site) -> None:
    many = [reported(f"m{number}", finds=number / 100_000) for number in range(MOST_STREAMS + 7)]
    site.watched = known_streams([*many, reported("fell", state="raised")], NOW)
    page = (await asked(site, "/alerts")).text
    assert f"Watched: {MOST_STREAMS + 8}" in page
    assert len(rows(page)) == MOST_STREAMS
    assert rows(page)[0].startswith("fell")
    assert "8 more streams are left out: <code>/api/v1/alert-streams</code>" in page
    assert "m0 " not in " ".join(rows(page))

    found: list[str] = []
    path: str | None = f"{STREAMS_PATH}?limit=40&rule={DEFAULT_ALERT_RULE.id}"
    while path is not None:
        answer = await asked(site, path)
        assert answer.headers["x-total-count"] == str(MOST_STREAMS + 8)
        found += (each["stream"]["metric"] for each in answer.json()["streams"])
        path = answer.links["next"]["url"] if "next" in answer.links else None
    assert found == [each.stream.metric for each in site.watched.streams]
    assert len(set(found)) == MOST_STREAMS + 8


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (watched_streams.NOT_READ, "read from Kafka while somebody looks"),
        (known_streams([], NOW), "no process has watched scores yet"),
        (known_streams([], NOW), "<code>traceweir alerts run</code>"),
        (replace(watched_streams.NOT_READ, problem="<b>gone</b>"), "The streams are not known.</b> &lt;b"),
        (replace(FOUND, problem="no broker"), "The table is not up to date.</b> no broker"),
    ],
)
async def test_the_page_says_why_streams_are_missing(known: KnownStreams, words: str, site: Site) -> None:
    site.watched = known
    assert words in (await asked(site, "/alerts")).text.partition("<h2>Watched")[2]


def test_a_problem_leaves_the_streams() -> None:
    assert with_problem(FOUND, "the topic is missing") == replace(FOUND, problem="the topic is missing")
