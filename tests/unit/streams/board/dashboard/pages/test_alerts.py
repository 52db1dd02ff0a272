"""The page of alerts, the overview, the charts and the API say of an alert the same, once, with what to do next."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.support.alerts import make_alert, resolved, send_alerts
from tests.support.dashboard_pages import Open, commands
from tests.support.dashboard_site import Site
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.schemas.alert import Alert

pytestmark = pytest.mark.slow

METRIC = "response_match_score"
OPEN_ONE = make_alert(by={"app_name": "rail", "user_id": "kim"})
ENDED = resolved(make_alert("helpful", hours=30), hours=2)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site whose app has a new version since the onset of an open alert, which passes less often."""
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW)
    scores = []
    for number in range(120):
        at = NOW - timedelta(minutes=3 * number + 1)
        is_new = at >= OPEN_ONE.onset.at
        passes = number % 2 == 0 if is_new else number % 20 != 0
        version = "2.4.0" if is_new else "2.3.1"
        names = {"app_name": "rail", "agent_name": "rail-agent", "agent_version": version}
        scores.append(make_score(f"s{number}", METRIC, float(passes), occurred_at=at, **names))
    site.add(*scores)
    return site


def rows_of_what_got_worse(page: str) -> list[str]:
    found = re.search(r'aria-label="What got worse">(.*?)</table>', page, re.DOTALL)
    return [] if found is None else re.findall(r"<tr[ >].*?</tr>", found[1].partition("<tbody>")[2], re.DOTALL)


def marks_of(page: str) -> list[dict[str, Any]]:
    charts = [json.loads(unescape(each)) for each in re.findall(r'data-chart="([^"]*)"', page)]
    return [mark for chart in charts if chart["kind"] == "lines" for mark in chart["marks"]]


def linked(page: str, name: str) -> str:
    found = re.search(rf'<a href="([^"]*)">{name}</a>', page)
    assert found is not None, name
    return unescape(found[1])


async def test_the_page_says_of_an_alert_what_when_where_and_what_to_do(site: Site, visit: Open) -> None:
    send_alerts(site.store, OPEN_ONE, ENDED)
    page = (await visit(site).get("/alerts")).text
    opened, ended = page.split("<h2>Ended: 1")
    for text in (
        "<h2>Open: 1", "Pass rate of", f"<bdi>{METRIC}</bdi>", "app <bdi>rail</bdi>, user <bdi>kim</bdi>", "−20.0 points",
        "−31.0 to −2.0 (95 %)", "usual: 90.0 %", "2026-01-31 09:00:00", "2026-01-31 08:30:00", "2026-01-31 09:05:00",
        "any-pass-rate-drops", "after 130 sessions", "not known", "agent version <bdi>2.4.0</bdi>",
        'href="/session?session_id=session-1"',
    ):  # fmt: skip
        assert text in opened, text
    assert commands(opened) == [f"traceweir alerts accept {OPEN_ONE.alert_id}"]
    assert "helpful" in ended
    assert commands(ended) == []
    assert str(ENDED.occurred_at)[:19] in ended


async def test_an_alert_leads_to_the_results_before_and_after_its_onset(site: Site, visit: Open) -> None:
    send_alerts(site.store, OPEN_ONE)
    client = visit(site)
    page = (await client.get("/alerts?span=1h")).text
    compare, sessions = linked(page, "Compare before and after"), linked(page, "Failed sessions since then")
    assert "of every user" in page
    compared = (await client.get(compare)).text
    # 60 results since the onset, of which 30 pass; before it 60 in a day, of which 57 pass.
    assert "95.0 %" in compared
    assert "50.0 %" in compared
    assert "−45.0 points" in compared
    listed = (await client.get(sessions)).text
    assert "user_id=kim" in sessions
    assert "status=FAILED" in sessions
    assert listed.count("<h1") == 1


async def test_an_ended_alert_is_compared_up_to_its_end(site: Site, visit: Open) -> None:
    send_alerts(site.store, ENDED)
    page = (await visit(site).get("/alerts")).text
    until = f"second_until={ENDED.occurred_at:%Y-%m-%dT%H}%3A00%3A00Z"
    assert until in linked(page, "Compare before and after")
    assert "No alert is open." in page


async def test_without_an_alert_the_page_says_what_runs_and_how_to_begin(site: Site, visit: Open) -> None:
    page = (await visit(site).get("/alerts")).text
    assert commands(page) == ["traceweir alerts run", "traceweir alerts test --from 30d"]
    for text in ("any-pass-rate-drops", "drops by 0.02", "one false alarm in 60 days", "from its first 7 days"):
        assert text in page, text


async def test_the_page_says_that_neither_the_time_range_nor_filters_apply(site: Site, visit: Open) -> None:
    client = visit(site)
    assert "The time range does not apply to this page." in (await client.get("/alerts?span=1h")).text
    filtered = (await client.get("/alerts?app_name=shop")).text
    assert "The time range and the filters do not apply to this page." in filtered


async def test_one_alert_has_an_address_and_an_unknown_one_says_so(site: Site, visit: Open) -> None:
    send_alerts(site.store, OPEN_ONE, ENDED)
    client = visit(site)
    for alert, other in ((OPEN_ONE, ENDED), (ENDED, OPEN_ONE)):
        page = (await client.get("/alerts", params={"alert_id": alert.alert_id})).text
        assert page.count("<article") == 1
        assert alert.stream.metric in page
        assert f'session_id={other.sessions[0]}"' not in page or alert.sessions == other.sessions
    assert "The store has no such alert" in (await client.get("/alerts?alert_id=x")).text
    assert (await client.get("/alerts?older_than=x")).status_code == 422


async def test_the_list_of_ended_alerts_goes_on(site: Site, visit: Open) -> None:
    send_alerts(
        site.store, OPEN_ONE, *(resolved(make_alert("m", by={"app_name": str(number)})) for number in range(60))
    )
    client = visit(site)
    first = (await client.get("/alerts")).text
    assert first.count("<article") == 51
    second = (await client.get(unescape(re.search(r'rel="next" href="([^"]*)"', first)[1]))).text  # type: ignore[index]
    assert second.count("<article") == 10
    assert 'rel="next"' not in second


async def test_the_overview_shows_one_finding_once_and_alerts_first(site: Site, visit: Open) -> None:
    client = visit(site)
    before = rows_of_what_got_worse((await client.get("/")).text)
    assert before
    assert METRIC in before[0]
    of_all, of_other = make_alert(), make_alert("helpful", by={"app_name": "shop"})
    send_alerts(site.store, of_all, of_other)
    page = (await client.get("/")).text
    rows = rows_of_what_got_worse(page)
    assert ['class="s f"' in row for row in rows[:2]] == [True, True]
    # The regression of all results is what the alert says; those of slices, if there are any, stay.
    assert len(rows) == len(before) + 1
    assert "open alerts first" in page
    # An alert of another app, one that has ended, and one after the time range are no part of it.
    assert "helpful" not in "".join(rows_of_what_got_worse((await client.get("/?app_name=rail")).text))
    send_alerts(site.store, resolved(of_all), offset=9)
    assert len([row for row in rows_of_what_got_worse((await client.get("/")).text) if 'class="s f"' in row]) == 1
    early = (await client.get("/?since=2026-01-30T00:00Z&until=2026-01-31T08:00Z")).text
    assert 'class="s f" href' not in early


async def test_an_open_alert_is_on_the_overview_although_nothing_was_scored(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW)
    send_alerts(site.store, make_alert())
    page = (await visit(site).get("/?span=1h")).text
    assert len(rows_of_what_got_worse(page)) == 1
    assert "No session was scored" in page


@pytest.mark.parametrize("view", ["/", f"/metric?metric={METRIC}"])
async def test_charts_of_the_metric_mark_the_onset_with_its_interval(view: str, site: Site, visit: Open) -> None:
    other, elsewhere = make_alert("helpful"), make_alert(by={"app_name": "shop"})
    send_alerts(site.store, OPEN_ONE, other, elsewhere)
    separator = "&" if "?" in view else "?"
    page = (await visit(site).get(f"{view}{separator}app_name=rail")).text
    alerts = [mark for mark in marks_of(page) if "interval" in mark]
    onset = OPEN_ONE.onset
    assert alerts
    for mark in alerts:
        assert mark["x"] == onset.at.timestamp()
        assert mark["label"] == f"alert: {METRIC}"
        assert mark["interval"] == [onset.earliest.timestamp(), onset.latest.timestamp()]
    assert len(alerts) == (2 if "metric" in view else 1)
    # What the mark says is there as text too.
    assert "Alerts whose change is in this time range:" in page
    assert any("interval" not in mark for mark in marks_of(page))


async def test_the_chart_of_what_is_not_scored_marks_alerts_of_that_share_alone(site: Site, visit: Open) -> None:
    site.add(make_score("unscored", METRIC, None, not_evaluated_because="error", occurred_at=NOW - timedelta(hours=1)))
    effect = {"estimate": 0.1, "low": 0.03, "high": 0.2}
    send_alerts(site.store, OPEN_ONE, make_alert("helpful", what="not_evaluated", effect=effect, baseline=0.01))
    page = (await visit(site).get("/not-scored")).text
    assert [mark["label"] for mark in marks_of(page) if "interval" in mark] == ["alert: helpful"]
    assert "share not scored of <bdi>helpful</bdi> rose" in page
    assert "+10.0 points" in (await visit(site).get("/alerts")).text


@pytest.mark.parametrize(
    ("change", "joins"),
    [
        ({}, True),
        ({"by": {"agent_name": "rail-agent"}}, True),
        ({"by": {"app_name": "rail"}}, False),
        ({"level": "invocation"}, False),
        ({"what": "not_evaluated"}, False),
        ({"hours": 1}, False),
    ],
)
async def test_a_regression_of_other_results_or_another_time_stays(
    change: dict[str, Any], joins: bool, site: Site, visit: Open
) -> None:
    client = visit(site)
    without = rows_of_what_got_worse((await client.get("/")).text)
    send_alerts(site.store, make_alert(**change))
    rows = rows_of_what_got_worse((await client.get("/")).text)
    assert len(rows) == len(without) + (0 if joins else 1)


async def test_the_api_answers_with_the_records_page_by_page(site: Site, visit: Open) -> None:
    send_alerts(site.store, OPEN_ONE, ENDED)
    client = visit(site)

    async def ask(**parameters: str) -> list[Alert]:
        answer = await client.get("/api/v1/alerts", params=parameters)
        assert answer.status_code == 200
        return [Alert.model_validate_json(json.dumps(each)) for each in answer.json()]

    assert await ask() == [OPEN_ONE, ENDED]
    assert await ask(state="raised") == [OPEN_ONE]
    assert await ask(metric="helpful") == [ENDED]
    assert await ask(alert_id=ENDED.alert_id) == [ENDED]
    first = await client.get("/api/v1/alerts?limit=1")
    assert first.headers["x-total-count"] == "2"
    next_one = re.fullmatch(r'<(.*)>; rel="next"', first.headers["link"])
    assert next_one is not None
    last = await client.get(next_one[1])
    assert [each["alert_id"] for each in last.json()] == [ENDED.alert_id]
    assert "link" not in last.headers
    assert first.json()[0]["onset"].keys() == {"at", "from", "to"}
    assert (await client.get("/api/v1/alerts?state=open")).status_code == 422
    assert "not a place in the list" in (await client.get("/api/v1/alerts?older_than=x")).json()["detail"]


async def test_the_page_of_one_alert_says_where_the_change_is(site: Site, visit: Open) -> None:
    alert = make_alert(by={"app_name": "rail"})
    send_alerts(site.store, alert, OPEN_ONE)
    client = visit(site)
    page = (await client.get("/alerts", params={"alert_id": alert.alert_id})).text
    assert "No slice can be tested." in page
    assert "Agent has the same value in all results, and is left out." in page
    before = alert.onset.earliest - timedelta(minutes=9)
    site.add(make_score("before", METRIC, 1.0, occurred_at=before, app_name="rail", agent_name="another"))
    page = (await client.get("/alerts", params={"alert_id": alert.alert_id})).text
    [where] = re.findall(r'aria-label="Slices that carry the change">(.*?)</table>', page, re.DOTALL)
    assert "agent <bdi>rail-agent</bdi>" in where
    assert "app <bdi>" not in where
    assert "is left out" not in page
    for other in ("/alerts", f"/alerts?alert_id={OPEN_ONE.alert_id}"):
        assert "Slices that carry the change" not in (await client.get(other)).text


@pytest.mark.parametrize(
    ("resolution", "words"),
    [
        ("recovered", "UTC, the scores are back to what was usual <"),
        ("accepted", "UTC, somebody has accepted the change <"),
        ("rule_ended", "UTC, its rule was withdrawn or changed <"),
        ("state_lost", "UTC, the state of alerts was lost, so that nobody knows whether the scores are back <"),
    ],
)
async def test_the_page_says_why_an_alert_has_ended(resolution: str, words: str, site: Site, visit: Open) -> None:
    ended = resolved(make_alert()).model_copy(update={"resolution": resolution})
    send_alerts(site.store, ended)
    assert words in (await visit(site).get("/alerts", params={"alert_id": ended.alert_id})).text


async def test_the_api_says_where_the_change_is_as_the_page_does(site: Site, visit: Open) -> None:
    site.add(
        make_score("before", METRIC, 1.0, occurred_at=OPEN_ONE.onset.earliest - timedelta(minutes=9), app_name="rail")
    )
    everywhere = make_alert()
    of_user, of_mean = OPEN_ONE, make_alert("helpful", what="mean")
    send_alerts(site.store, everywhere, of_user, of_mean)
    client = visit(site)

    async def where(alert: Alert) -> Any:
        answer = await client.get("/api/v1/alert-slices", params={"alert_id": alert.alert_id})
        assert answer.status_code == 200
        return answer.json()

    found = await where(everywhere)
    page = (await client.get("/alerts", params={"alert_id": everywhere.alert_id})).text
    shown = page.partition('aria-label="Slices that carry the change"')[2].partition("</table>")[0]
    assert shown.count('<th scope="row">') == len(found["slices"]) > 0
    assert f"{found['tested']} slice{'' if found['tested'] == 1 else 's'} with ten verdicts" in page
    for each in found["slices"]:
        assert f"<bdi>{each['value']}</bdi>" in shown
        assert each["low"] <= each["difference"] <= each["high"] < 0
        assert each["difference"] == pytest.approx(each["after"] - each["before"])
        assert 0 <= each["p_value"] < 0.05
    assert found["of_one_value"] == ["app_name"]
    assert "App has the same value in all results, and is left out." in page
    for other in (of_user, of_mean):
        answer = await where(other)
        assert answer == {"alert_id": other.alert_id, "tested": None, "slices": [], "left_out": [], "of_one_value": []}
    unknown = await client.get("/api/v1/alert-slices?alert_id=x")
    assert unknown.status_code == 404
    assert "the store has no alert 'x'" in unknown.json()["detail"]
    assert (await client.get("/api/v1/alert-slices")).status_code == 422
