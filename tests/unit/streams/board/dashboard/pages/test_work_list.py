"""The page of sessions is a list of what a person has to look at."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson
import pytest
from pyarrow.parquet import read_table
from tests.support.dashboard_pages import Open
from tests.support.dashboard_site import HOSTILE, SECRET, Site, session_id_of
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import open_store

pytestmark = pytest.mark.slow

HOUR = timedelta(hours=1)
HERE = {"origin": "http://127.0.0.1:4180"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(open_store(tmp_path_factory.mktemp("store") / "store.duckdb"), now=NOW)
    site.add_sessions(60)
    site.now += timedelta(minutes=1)  # a time range does not contain its end
    return site


async def test_a_row_has_what_was_said_the_tools_and_the_failed_metrics(site: Site, visit: Open) -> None:
    page = (await visit(replace(site, content="full")).get("/sessions?span=7d&status=FAILED")).text

    assert "Two seats from Busan to Seoul" in page
    assert "Two seats on KTX 127 are booked." in page
    assert '<bdi>book_seats</bdi><span class="visually-hidden">, failed</span>' in page
    assert '<span class="s f wraps"><bdi>tool_<wbr>trajectory_<wbr>avg_<wbr>score</bdi></span>' in page
    assert "876 tokens" in page
    assert "3.9 s" in page
    assert "<script>document" not in page


@pytest.mark.parametrize(("content", "has_question"), [("redacted", True), ("none", False)])
@pytest.mark.parametrize("view", ["/sessions?span=7d&status=FAILED", "/?span=7d"])
async def test_a_row_has_as_much_text_as_is_configured(
    view: str, content: Any, has_question: bool, site: Site, visit: Open
) -> None:
    page = (await visit(replace(site, content=content)).get(view)).text

    assert ("Two seats from Busan" in page, SECRET in page) == (has_question, False)


async def test_each_link_that_narrows_the_list_has_the_number_of_its_sessions(site: Site, visit: Open) -> None:
    client = visit(site)
    page = (await client.get("/sessions?span=7d&status=FAILED")).text

    links = re.findall(r'<li><a href="([^"]*)"><bdi>[^<]*</bdi></a> <span class="dim">(\d+)</span>', page)
    assert len(links) > 8
    for link, number in links[::3]:
        narrowed = (await client.get(unescape(link))).text
        total = re.search(r"<h2>(\d+) sessions?", narrowed)
        assert total is not None, link
        assert total[1] == number, link


async def test_the_list_is_sorted_by_the_values_of_a_metric(site: Site, visit: Open) -> None:
    client = visit(site)
    address = "/sessions?span=7d&metric=trace_value&order=lowest"
    found: list[float] = []
    for _ in range(3):
        page = (await client.get(address)).text
        found += [float(each) for each in re.findall(r'data-label="trace_value">(0[.\d]*)', page)]
        older = re.search(r'rel="next" href="([^"]*)"', page)
        if older is None:
            break
        address = unescape(older[1])

    assert len(found) == 60
    assert found == sorted(found)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("order=lowest", "name a metric"),
        ("order=best", "order is none of newest, lowest, highest"),
        ("label=gold", "label is not of the form NAME=VALUE"),
        ("metric=a&order=lowest&older_than=x", "is not a place in the list"),
    ],
)
async def test_a_parameter_of_the_list_out_of_its_range_is_refused(
    query: str, sentence: str, site: Site, visit: Open
) -> None:
    answer = await visit(site).get(f"/sessions?{query}")

    assert answer.status_code == 422
    assert sentence in unescape(answer.text)


async def test_conditions_are_kept_by_the_form_and_can_be_removed(site: Site, visit: Open) -> None:
    page = (await visit(site).get("/sessions", params={"tool": HOSTILE.strip(), "span": "7d"})).text

    assert '<input type="hidden" name="tool"' in page
    assert 'title="Remove this condition">tool' in page
    assert "<script>document" not in page


async def test_the_api_has_the_same_list_its_total_and_its_facets(site: Site, visit: Open) -> None:
    client = visit(site)
    query = "since=2026-01-01T00:00:00Z&tool_error=book_seats&limit=1"
    listed = await client.get(f"/api/sessions?{query}")
    found = (await client.get("/api/sessions?since=2026-01-01T00:00:00Z&limit=1")).headers["x-total-count"]
    facets = (await client.get("/api/facets?since=2026-01-01T00:00:00Z")).json()

    assert listed.json()[0]["failed_tools"] == ["book_seats"]
    assert listed.json()[0]["session_id"] == session_id_of(0)
    assert (found, facets["sessions"], facets["are_all"]) == ("60", 60, True)
    assert (await client.get("/api/sessions?order=lowest")).status_code == 422
    assert (await client.get("/api/sessions?label=gold")).status_code == 422


SELECTION = "/sessions/selection"


def places(*numbers: int) -> list[str]:
    return [f"0,{session_id_of(number)}" for number in numbers]


async def test_selected_sessions_are_a_file_of_csv_json_lines_or_parquet(site: Site, visit: Open) -> None:
    client = visit(site, **HERE)
    given: dict[str, Any] = {"selected": places(5, 2)}

    table = await client.post(SELECTION, data={**given, "form": "csv"})
    lines = await client.post(SELECTION, data={**given, "form": "jsonl"})
    parquet = await client.post(SELECTION, data={**given, "form": "parquet"})

    names = [session_id_of(5), session_id_of(2)]
    rows = list(csv.DictReader(table.text.splitlines()))
    assert [row["session_id"] for row in rows] == names
    assert [orjson.loads(line)["session_id"] for line in lines.text.splitlines()] == names
    found = read_table(BytesIO(parquet.content)).to_pylist()
    assert [row["session_id"] for row in found] == names
    assert found[0]["tools"] == rows[0]["tools"] == '["find_trains","book_seats"]'
    assert "Two seats from Busan" in rows[0]["question"]
    assert SECRET not in table.text + lines.text
    assert table.headers["content-disposition"] == 'attachment; filename="sessions.csv"'


async def test_all_sessions_of_the_page_are_selected_at_once(site: Site, visit: Open) -> None:
    client = visit(site, **HERE)
    page = (await client.get("/sessions?span=7d&limit=50")).text
    listed = [unescape(each) for each in re.findall(r'name="listed" value="([^"]*)"', page)]

    answer = await client.post(SELECTION, data={"listed": listed, "every": "true", "form": "jsonl"})

    assert len(answer.text.splitlines()) == 50


async def test_the_ten_worst_sessions_of_a_tenant_are_three_clicks_away_and_two_more_make_them_cases(
    tmp_path: Path, visit: Open
) -> None:
    evalset = tmp_path / "cases.evalset.json"
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW, evalset=evalset)
    site.add_sessions(40)
    worst = [session_id_of(number) for number in range(25, 40)]
    for name in worst:
        site.add(
            *(
                make_score(
                    name, f"m{n}", 0.0, result_id=f"{name}-{n}", occurred_at=NOW - HOUR, labels={"tenant": "acme"}
                )
                for n in range(5)
            )
        )
    client = visit(replace(site, now=NOW + HOUR / 60), **HERE)
    overview = (await client.get("/?span=7d")).text
    sessions = unescape(re.findall(r'href="(/sessions[^"]*)">Sessions', overview)[0])
    narrowed = (await client.get(sessions)).text
    (link,) = re.findall(r'href="([^"]*)" aria-label="worst sessions of tenant=acme"', narrowed)

    page = (await client.get(unescape(link))).text
    listed = [unescape(each) for each in re.findall(r'name="listed" value="([^"]*)"', page)]
    assert {each.partition(",")[2] for each in listed} == set(worst)
    assert "the first 10" in page
    answer = await client.post(SELECTION, data={"listed": listed, "first": "true", "form": "evalset"})

    assert answer.text.count(">added<") == 10
    assert len(orjson.loads(evalset.read_bytes())["eval_cases"]) == 10


async def test_worst_sessions_are_offered_where_a_criterion_can_have_failed(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW)
    missing: dict[str, Any] = {"not_evaluated_because": "error", "cause": "judge_unavailable"}
    site.add_sessions(1)
    name = session_id_of(0)
    site.add(
        make_score(name),
        make_score(name, "gate", 0.0),
        make_score(name, "asked", None, **missing),
    )
    client = visit(replace(site, now=NOW + HOUR / 60))

    page = unescape((await client.get("/sessions?span=7d")).text)
    offered = re.findall(r'href="([^"]*)" aria-label="worst sessions of', page)
    assert "cause=judge_unavailable" in page
    assert "metric=gate" in page
    assert [link for link in offered if "cause=" in link or "metric=gate" in link] == []
    assert [link for link in offered if "metric=response_match_score" in link]
    for narrowed in ("cause=judge_unavailable", "reason=error", "status=NOT_EVALUATED", "metric=gate"):
        assert "worst sessions of" not in (await client.get(f"/sessions?span=7d&{narrowed}")).text


@pytest.mark.parametrize("name", ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)"])
async def test_a_cell_that_a_spreadsheet_would_run_is_a_text(name: str, tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW)
    site.add(make_score(name, app_name=name))

    answer = await visit(site, **HERE).post(SELECTION, data={"selected": [f"0,{name}"], "form": "csv"})

    (row,) = csv.DictReader(answer.text.splitlines())
    assert (row["session_id"], row["app_name"]) == (f"'{name}", f"'{name}")


async def test_selected_sessions_are_added_to_the_eval_set(site: Site, visit: Open, tmp_path: Path) -> None:
    evalset = tmp_path / "cases.evalset.json"
    client = visit(replace(site, evalset=evalset), **HERE)
    given: dict[str, Any] = {"selected": [*places(1, 2), "0,unknown"], "form": "evalset"}

    first = (await client.post(SELECTION, data=given)).text
    second = (await client.post(SELECTION, data=given)).text

    cases = orjson.loads(evalset.read_bytes())["eval_cases"]
    assert [each["eval_id"] for each in cases] == [session_id_of(1), session_id_of(2)]
    assert (first.count(">added<"), first.count("not added")) == (2, 1)
    assert second.count("was there already") == 2


async def test_without_an_eval_set_the_commands_are_shown(site: Site, visit: Open) -> None:
    page = (await visit(site, **HERE).post(SELECTION, data={"selected": places(1), "form": "evalset"})).text

    assert f"traceweir evalset add --to cases.evalset.json {session_id_of(1)}" in unescape(page)


async def test_the_call_of_the_api_gives_the_list_that_the_page_shows(site: Site, visit: Open) -> None:
    client = visit(site, **HERE)
    page = (await client.get("/sessions?span=7d&metric=trace_value&order=lowest&tool_error=book_seats")).text
    (query,) = re.findall(r'name="query" value="([^"]*)"', page)
    given = {"selected": places(3), "form": "api", "query": unescape(query)}

    shown = unescape((await client.post(SELECTION, data=given)).text)

    (call,) = re.findall(r"curl -s '(http://127.0.0.1:4180/api/v1/sessions[^']*)'", shown)
    listed = [each["session_id"] for each in (await client.get(call)).json()]
    assert listed == re.findall(r'name="selected" value="0,([^"]*)"', page)
    assert f"curl -s 'http://127.0.0.1:4180/api/v1/session?session_id={session_id_of(3)}'" in shown


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"form": "csv"}, "no session is selected"),
        ({"form": "csv", "selected": "x"}, "is not of the form SEGMENT,SESSION"),
        ({"form": "xlsx", "selected": "0,a"}, "form: Input should be"),
        ({"form": "evalset", "selected": [f"0,s{n}" for n in range(101)]}, "at most 100 become cases"),
    ],
)
async def test_a_selection_that_cannot_be_used_says_why(
    given: dict[str, Any], sentence: str, site: Site, visit: Open
) -> None:
    answer = await visit(site, **HERE).post(SELECTION, data=given)

    assert answer.status_code == 422
    assert sentence in unescape(answer.text)


@pytest.mark.parametrize(
    ("fields", "query"),
    [
        ({"user_id": "sha256:" + "ab" * 32}, "user_id=sha256%3A" + "ab" * 32),
        ({"labels": {"tenant": "acme"}}, "label=tenant%3Dacme"),
    ],
)
async def test_a_slice_of_a_user_or_of_a_label_leads_to_its_sessions(
    fields: dict[str, Any], query: str, tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    for number in range(24):
        is_own = number % 2 == 0
        site.add(make_score(f"s{number}", value=float(not is_own), **(fields if is_own else {})))
    client = visit(site)

    page = unescape((await client.get("/metric?metric=response_match_score")).text)
    (link,) = re.findall(rf'href="(/sessions[?][^"]*{re.escape(query)}[^"]*)"', page)

    assert "12 sessions" in (await client.get(link)).text


async def test_a_digest_that_narrows_the_list_is_shown_by_its_beginning(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW)
    user = "sha256:" + "0123456789abcdef" * 4
    site.add_sessions(2)
    site.add(make_score(session_id_of(0), user_id=user, config_digest="fedcba9876543210" * 4, value=0.0))
    site.now += timedelta(minutes=1)

    page = (await visit(site).get("/sessions?span=7d")).text

    assert "<bdi>fedcba9876543210…</bdi>" in page
    assert f'title="{user}"><bdi>{user[:16]}…</bdi>' in page
    assert "more characters" not in page
