"""Every page keeps text of agents inert, says what to do where there is nothing, and shows figures in one way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.support.dashboard_pages import TOKEN, VIEWS, Open, Tags, judged_site
from tests.support.dashboard_site import HOSTILE, Site
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.streams.board.store.duckdb_store import DuckDBStore
from traceweir.streams.board.store.errors import StoreUnavailableError
from traceweir.streams.tools.doctor.finding import Finding

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("view", VIEWS)
async def test_text_of_agents_never_becomes_markup_or_reorders_text(view: str, site: Site, visit: Open) -> None:
    answer = await visit(replace(site, content="full")).get(view)

    assert answer.status_code == 200
    scripts = [attributes.get("src") for tag, attributes in Tags(answer.text).found if tag == "script"]
    assert scripts == ["/assets/uPlot.iife.min.js", "/assets/charts.js", "/assets/state.js", "/assets/live.js"]
    assert not [tag for tag, attributes in Tags(answer.text).found if tag == "img" or "onerror" in attributes]
    assert not [attributes for _, attributes in Tags(answer.text).found if "style" in attributes]
    assert chr(0x202E) not in answer.text
    assert "49" not in re.findall(r"{{.*?}}", answer.text)


@pytest.mark.parametrize("view", ["/", "/metrics", "/metric?metric=safety_v1"])
async def test_rates_are_split_by_the_judge_where_several_have_judged(view: str, tmp_path: Path, visit: Open) -> None:
    site = judged_site(tmp_path)

    page = (await visit(site).get(view)).text

    (link,) = set(re.findall(r'href="([^"]*judge=openai%2Fone)"', page))
    alone = (await visit(site).get(unescape(link))).text
    assert "66.7" in page or "67" in page
    assert "no judge named" in page
    assert "<script>document" not in page
    assert "By judge" not in alone
    assert "two" not in re.sub(r"<datalist.*?</datalist>", "", alone, flags=re.DOTALL)


async def test_rates_of_one_judge_are_not_split(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    site.add(make_score("a", "safety_v1", 1.0, judge="one"), make_score("b", "safety_v1", 0.0))

    pages = [(await visit(site).get(view)).text for view in ("/", "/metric?metric=safety_v1")]

    assert not any("no judge named" in page or "By judge" in page for page in pages)


@pytest.mark.parametrize("view", ["/", "/metrics", "/metric?metric=token_usage_v1", "/session?session_id=s0"])
async def test_values_without_a_threshold_have_no_pass_rate_and_no_colour(
    view: str, tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    site.add(*(make_score(f"s{number}", "token_usage_v1", 900.0 + number, threshold=None) for number in range(3)))

    page = (await visit(site).get(view)).text

    assert "100 %" not in page
    assert 'class="interval"' not in page
    assert 'class="s p"' not in page
    assert "informational" in page
    if "session" not in view:
        assert re.search(r"median</span> 901 tokens<span class=\"dim\">, p95</span> 902 tokens", page)
        assert "lower is better" in page


@pytest.mark.parametrize(
    ("view", "reads"), [("/", 1), ("/metrics", 1), ("/metric?metric=latency", 1), ("/sessions", 0)]
)
async def test_a_page_reads_values_for_quantiles_of_the_span_that_it_shows_only(
    view: str, reads: int, tmp_path: Path, visit: Open
) -> None:
    class Counted(DuckDBStore):
        reads = 0

        def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
            self.reads += "rounded" in sql
            return super().query(sql, parameters)

    store = Counted(tmp_path / "store.duckdb", "this test", NOW)
    site = Site(store, now=NOW + timedelta(minutes=1))
    site.add(make_score("s0", "latency", 0.5, threshold=None))

    await visit(site).get(view)

    assert store.reads == reads


@pytest.mark.parametrize("view", VIEWS[:2] + VIEWS[3:])
async def test_an_empty_store_gives_a_page_that_says_so(
    view: str, visit: Open, tmp_path_factory: pytest.TempPathFactory
) -> None:
    empty = Site(open_store(tmp_path_factory.mktemp("empty") / "store.duckdb"), now=NOW)
    answer = await visit(empty).get(view)

    assert (answer.status_code, 'class="empty"' in answer.text) == (200, True)
    if view == "/":
        assert "traceweir up --demo" in answer.text


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("/?span=2y", "span is none of 1h, 6h, 24h, 7d, 30d"),
        ("/?since=yesterday", "since is not a time such as 2026-01-31T12:00"),
        ("/?since=2027-01-01T00:00", "the time range ends at 2026-01-31 12:01:00 and begins at 2027-01-01 00:00:00"),
        ("/sessions?least=nan", "least is not a number"),
        ("/sessions?status=BROKEN", "status is none of PASSED, FAILED, NOT_EVALUATED"),
        ("/sessions?older_than=x", "older_than: &#39;x&#39; is not a place in the list"),
        ("/sessions?limit=51", "limit is none of 50, 200, 500"),
        (f"/?app_name={'x' * 2000}", "app_name has 2000 characters; at most 1024 are allowed"),
        ("/metric", "metric is missing: name one"),
        ("/compare?first_since=%00", "first_since is not a time"),
    ],
)
async def test_a_parameter_out_of_its_range_is_refused_with_a_sentence(
    address: str, sentence: str, site: Site, visit: Open
) -> None:
    answer = await visit(site).get(address)

    assert (answer.status_code, answer.headers["content-type"]) == (422, "text/html; charset=utf-8")
    assert sentence.split("first_")[-1] in answer.text


async def test_an_unknown_session_or_page_is_a_404_with_a_sentence(site: Site, visit: Open) -> None:
    client = visit(site)

    assert "The store has no session" in (await client.get("/session?session_id=<b>")).text
    assert (await client.get("/session?session_id=x")).status_code == 404
    assert (await client.get("/nothing")).status_code == 404


async def test_a_span_before_the_first_year_is_refused_or_empty(site: Site, visit: Open) -> None:
    answer = await visit(site).get("/?since=0001-01-01T00:00&until=0001-01-02T00:00")

    assert (answer.status_code, 'class="empty"' in answer.text) == (200, True)


async def test_a_store_that_is_down_is_a_503_page(site: Site, visit: Open) -> None:
    class Down:
        def query(self, sql: str, parameters: object = None) -> list[dict[str, object]]:
            raise StoreUnavailableError("the disk is gone")

    answer = await visit(replace(site, store=Down())).get("/")

    assert (answer.status_code, "the disk is gone" in answer.text) == (503, True)


async def test_every_answer_forbids_inline_scripts_and_other_sites(site: Site, visit: Open) -> None:
    client = visit(site)
    for address in ("/", "/nothing", "/api/state", "/assets/style.css"):
        policy = (await client.get(address)).headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy


async def test_every_page_shows_the_health_and_what_came_from_kafka_is_inert(site: Site, visit: Open) -> None:
    hurt = [Finding("workers", "failure", f"no worker runs {HOSTILE}"), Finding("losses", "not checked", "nothing yet")]
    sick = replace(site, health=hurt)
    for view in VIEWS:
        text = (await visit(sick).get(view)).text
        assert "no worker runs &lt;script&gt;" in text
        states = [found["class"] for tag, found in Tags(text).found if tag == "li" and found.get("class")]
        assert states[:2] == ["failure", "not-checked"]
        assert "<script>document.title" not in text
        assert "not healthy" in text
        assert "up to date" not in text


async def test_the_api_and_the_health_page_have_the_parts_of_the_health(site: Site, visit: Open) -> None:
    parts = [Finding("broker", "ok", "answered 1 s ago"), Finding("workers", "failure", "no worker runs")]
    browser = visit(replace(site, health=parts))
    state = (await browser.get("/api/state")).json()
    assert state["health"][1] == {"check": "workers", "state": "failure", "text": "no worker runs"}
    answer = await browser.get("/healthz")
    assert (answer.status_code, answer.json()) == (503, {"healthy": False, "problems": ["workers: no worker runs"]})
    well = await visit(site).get("/healthz")
    assert (well.status_code, well.json()) == (200, {"healthy": True, "problems": []})
    assert (await visit(replace(site, token=TOKEN)).get("/healthz", headers={"accept": "*/*"})).status_code == 401


async def test_noise_against_the_span_before_has_no_colour_and_few_sessions_give_no_percentage(
    tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    for day, passed in [(1, 14), (0, 12)]:
        at = NOW - timedelta(days=day)
        site.add(*(make_score(f"{day}-{n}", value=float(n < passed), occurred_at=at) for n in range(20)))

    for view in ("/", "/metrics"):
        text = (await visit(site).get(view)).text
        assert "−10.0 points" in text
        assert 'class="bad">−10.0 points' not in text
        assert "corrected by Holm" in text
        assert ", 20 before" in text
    site.add(*(make_score(f"worse-{n}", value=0.0, occurred_at=NOW) for n in range(60)))
    assert 'class="bad">−55.0 points' in (await visit(site).get("/metrics")).text
    page = (await visit(site).get("/")).text
    assert "of 1 rates 1 fell and 0 rose beyond chance" in page
    assert "– before: the time range before is not stored as a whole" in page


async def test_times_are_elements_that_name_their_moment_and_fields_take_iso(site: Site, visit: Open) -> None:
    page = (await visit(site).get("/sessions?since=2026-01-30T00:00Z&until=2026-01-31T12:01Z")).text
    assert '<time datetime="2026-01-31T12:00:00Z">2026-01-31 12:00:00</time>' in page
    assert 'name="since" value="2026-01-30T00:00Z"' in page
    assert "datetime-local" not in page
