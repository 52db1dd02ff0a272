"""The pages show what the store has, keep text of agents inert, and say what to do where there is nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import orjson
import pytest
from tests.support.dashboard_site import HOSTILE, SECRET, Site, session_id_of, session_of
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, open_store, scores_batch

from traceweir.schemas.dead_letter import DeadLetter
from traceweir.schemas.judge_config import Budget
from traceweir.schemas.text import shell_command
from traceweir.streams.board.dashboard.access import COOKIE
from traceweir.streams.board.dashboard.content import Content
from traceweir.streams.board.dashboard.retention import Retention
from traceweir.streams.board.store import diff as diff_module
from traceweir.streams.board.store import sessions as sessions_module
from traceweir.streams.board.store.duckdb_store import DuckDBStore
from traceweir.streams.board.store.errors import StoreUnavailableError
from traceweir.streams.tools.doctor.finding import Finding

pytestmark = pytest.mark.slow

TOKEN = "a-token-of-20-letters"
HTML = {"accept": "text/html"}
VIEWS = (
    "/",
    "/sessions",
    f"/session?session_id={session_id_of(0)}",
    "/metrics",
    "/metric?metric=tool_trajectory_avg_score",
    "/not-scored",
    "/dead-letters",
    "/compare?first_agent_version=2.3.1&second_agent_version=2.4.0",
)

Open = Callable[..., httpx.AsyncClient]


class Tags(HTMLParser):
    """Collects the elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def commands(page: str) -> list[str]:
    """Returns the commands that a page shows."""
    return [unescape(each) for each in re.findall(r'<pre class="command"><code>(.*?)</code></pre>', page, re.DOTALL)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(open_store(tmp_path_factory.mktemp("store") / "store.duckdb"), now=NOW)
    site.add_sessions(60)
    letter = DeadLetter("not_json", HOSTILE, "assemble", "traceweir.traces", 1, 7, None, b"{")
    site.store.write(batch_of("dead-letters", FakeRecord(b"{", headers=letter.wire_headers())))
    site.now += timedelta(minutes=1)  # a span does not contain its end
    return site


@pytest.fixture
async def visit() -> AsyncIterator[Open]:
    """Returns a function that gives a browser without scripts, for a site."""
    async with AsyncExitStack() as stack:

        def connect(site: Site, host: str = "127.0.0.1:4180", **headers: str) -> httpx.AsyncClient:
            transport = httpx.ASGITransport(site.application())
            client = httpx.AsyncClient(transport=transport, base_url=f"http://{host}", headers=HTML | headers)
            stack.push_async_callback(client.aclose)
            return client

        yield connect


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


async def test_hostile_text_is_shown_as_it_is(site: Site, visit: Open) -> None:
    answer = await visit(replace(site, content="full")).get(VIEWS[2])

    assert "&lt;script&gt;document.title=&#39;owned&#39;&lt;/script&gt;" in answer.text
    assert "{{ 7 * 7 }} \\u202e" in answer.text


@pytest.mark.parametrize(
    ("content", "has_secret", "has_question"), [("full", True, True), ("redacted", False, True), ("none", False, False)]
)
async def test_a_session_is_shown_as_much_as_is_configured(
    content: Content, has_secret: bool, has_question: bool, site: Site, visit: Open
) -> None:
    page = (await visit(replace(site, content=content)).get(VIEWS[2])).text

    assert (SECRET in page, "Two seats from Busan" in page) == (has_secret, has_question)
    assert ("TRACEWEIR_DASHBOARD_CONTENT=none" in page) == (content == "none")


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


def judged_site(tmp_path: Path, **changes: Any) -> Site:
    """Returns a site with three verdicts of one judge, one of another, and one score whose judge is not known."""
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    verdicts = [("openai/one", 1.0), ("openai/one", 1.0), ("openai/one", 0.0), (f"two{HOSTILE}", 0.0), (None, 1.0)]
    site.add(
        *[
            make_score(f"s{number}", "safety_v1", value, judge=judge, agent_version=str(number % 2), **changes)
            for number, (judge, value) in enumerate(verdicts)
        ]
    )
    return site


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


async def test_the_charts_of_a_metric_are_of_one_judge_where_several_have_judged(tmp_path: Path, visit: Open) -> None:
    page = (await visit(judged_site(tmp_path)).get("/metric?metric=safety_v1")).text
    assert page.count("of the judge <bdi>openai/one</bdi> alone") == 2
    rates, means = re.findall(r'aria-label="Figures of the chart">(.*?)</table>', page, re.DOTALL)
    for figures, value in ((rates, "66.7"), (means, "0.667")):
        [row] = re.findall(r"<tr><td>(.*?)</tr>", figures, re.DOTALL)
        # Two of three verdicts of this judge, and not those of the other judge or of none.
        assert value in row
        assert row.endswith('<td class="r" data-label="results">3</td>')


async def test_rates_of_one_judge_are_not_split(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    site.add(make_score("a", "safety_v1", 1.0, judge="one"), make_score("b", "safety_v1", 0.0))

    pages = [(await visit(site).get(view)).text for view in ("/", "/metric?metric=safety_v1")]

    assert not any("no judge named" in page or "By judge" in page for page in pages)


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


async def test_the_pass_rate_of_the_overview_is_that_of_criteria_with_a_threshold(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    site.add(
        *(make_score(f"s{number}", "token_usage_v1", 900.0, threshold=None) for number in range(6)),
        *(make_score(f"s{number}", value=number / 3) for number in range(4)),
    )

    page = (await visit(site).get("/")).text

    (rate,) = re.findall(r'Pass rate, criteria with a threshold</span><span class="v">(.*?)</span>', page)
    assert rate == "25.0 %"


async def test_a_dead_letter_is_shown_with_its_place_and_its_reason(site: Site, visit: Open) -> None:
    page = (await visit(site).get("/dead-letters")).text

    assert "not json" in page
    assert "<bdi>traceweir.traces</bdi>:1:7" in page


async def test_the_overview_names_records_that_were_deleted_before_they_were_read(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW)
    site.add_sessions(1)
    view = VIEWS[0]
    before = (await visit(replace(site, now=NOW + timedelta(minutes=1))).get(view)).text
    problem = "40 offsets of traceweir.traces/1 were never read"
    letter = DeadLetter("missed", problem, "assemble", "traceweir.traces", 1, 49, None, None, timestamp=-1)
    site.store.write(batch_of("dead-letters", FakeRecord(None, headers=letter.wire_headers())))
    site.now += timedelta(minutes=1)

    assert "deleted by Kafka before they were read" not in before
    assert "deleted by Kafka before they were read" in (await visit(site).get(view)).text
    assert problem in (await visit(site).get("/dead-letters")).text


async def test_a_session_page_has_calls_errors_scores_and_the_nearest_trace(site: Site, visit: Open) -> None:
    page = (await visit(replace(site, trace_url="http://127.0.0.1:16686/trace/{trace_id}")).get(VIEWS[2])).text

    for text in (
        "book_seats",
        "error: sold out",
        "Two seats on KTX 127 are booked.",
        "outcome confidence",
        "not shared",
    ):
        assert text in page
    assert "<ins>one</ins><del>two</del>" in page
    assert commands(page) == [f"traceweir evalset add --to cases.evalset.json {session_id_of(0)}"]


@pytest.mark.parametrize("content", ["full", "redacted", "none"])
async def test_a_session_page_marks_the_turns_on_which_a_score_of_the_session_rests(
    content: Content, tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), content=content)
    site.add_sessions(1)
    about: dict[str, Any] = {"level": "session", "invocation_id": None, "session_id": session_id_of(0)}
    for number, turns in enumerate((["1", "of no turn", HOSTILE], "1", [["1"]])):
        details = {"turns": turns}
        site.add(
            make_score(
                **about, metric=f"rating_{number}", result_id=f"rated-{number}", status="FAILED", details=details
            )
        )
    page = (await visit(site).get(VIEWS[2])).text

    marks = [
        (attributes["href"], attributes["class"])
        for tag, attributes in Tags(page).found
        if tag == "a" and (attributes.get("href") or "").startswith("#rated-")
    ]
    assert marks == ([] if content == "none" else [("#rated-0", "s f")])
    assert ("rests on <bdi>1</bdi>, <bdi>of no turn</bdi>" in page) is (content != "none")
    assert not [tag for tag, _ in Tags(page).found if tag == "img"]


async def test_a_session_page_says_what_the_judge_did_not_read_and_which_category_it_chose(
    tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), content="full")
    site.add_sessions(1)
    about: dict[str, Any] = {"session_id": session_id_of(0), "invocation_id": None}
    fitted = {"characters": 5_000, "shortened": {"tool_result": 12, "agent": 1}}
    site.add(make_score(**about, metric="user_frustration", category="resolved", value=1.0, details={"fitted": fitted}))
    responses = {"responses": [{"value": 1.0, "sentences": [], "fitted": fitted}, {"value": 1.0, "sentences": []}]}
    site.add(make_score(**about, metric="hallucinations_v1", value=1.0, details=responses))
    page = (await visit(site).get(VIEWS[2])).text

    assert "<bdi>resolved</bdi>: " in page
    left_out = "5000 characters of 12 tool results, 1 message of the agent."
    assert page.count(f"Left out of the prompt to fit the judge's window: {left_out}") == 2


@pytest.mark.parametrize(
    ("content", "text", "details", "warned"),
    [
        ("full", "두 좌석을 예약했습니다.", {}, True),
        ("none", "두 좌석을 예약했습니다.", {}, False),
        ("full", "Two seats are booked.", {}, False),
        ("full", "Two seats are booked.", {"script": "Hangul"}, True),
        ("full", "Two seats are booked.", {"script": HOSTILE}, False),
    ],
)
async def test_a_session_page_warns_where_a_threshold_does_not_hold_in_the_language(
    content: Content, text: str, details: dict[str, Any], warned: bool, tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), content=content)
    session = session_of(0, site.now, is_new=False)
    for event in session["events"]:
        for name in ("user_content", "final_response"):
            if name in event:
                event[name] = {"parts": [{"text": text}]}
    site.store.write(batch_of("sessions", FakeRecord(orjson.dumps(session))))
    about: dict[str, Any] = {"session_id": session_id_of(0), "invocation_id": "1", "metric": "response_match_score"}
    site.add(make_score(**about, threshold=0.8, details=details))
    page = (await visit(site).get(VIEWS[2])).text

    assert ("In Korean, this threshold does not tell right answers from wrong ones" in page) is warned
    assert ("this threshold does not tell right answers from wrong ones" in page) is warned


@pytest.mark.parametrize(
    "session_id",
    [
        "'; touch owned #",
        "$(touch owned)`touch owned`",
        "-rf",
        "--help",
        "<b>&amp;'\"",
        "two  spaces\\",
        "y" * 1_024,
        "é 日本 🚉",
    ],
)
async def test_the_command_of_a_session_gives_its_whole_id_to_the_program(
    session_id: str, tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW, evalset=Path("my cases.evalset.json"))
    site.add(make_score(session_id))
    page = (await visit(site).get("/session", params={"session_id": session_id})).text
    (command,) = commands(page)
    *options, found = shlex.split(command)

    assert found == session_id
    assert options[:5] == ["traceweir", "evalset", "add", "--to", str(Path.cwd() / "my cases.evalset.json")]
    assert options[5:] == (["--"] if session_id.startswith("-") else [])


async def test_a_command_has_no_character_that_a_terminal_obeys(tmp_path: Path, visit: Open) -> None:
    session_id = "a\x1b[201~\r\ntouch owned\n\x03\u202e"
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW)
    site.add(make_score(session_id))
    (command,) = commands((await visit(site).get("/session", params={"session_id": session_id})).text)

    assert command == shell_command("traceweir", "evalset", "add", "--to", "cases.evalset.json", session_id)
    assert command.isprintable()


async def test_a_session_that_no_command_line_can_name_has_no_command(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW)
    site.add(make_score("a\0b"))
    page = (await visit(site).get("/session", params={"session_id": "a\0b"})).text

    assert "No command can name this session" in page
    assert commands(page) == []


async def test_a_case_with_other_content_is_replaced_by_the_command(site: Site, visit: Open) -> None:
    evalset = Path("/srv/cases.evalset.json")
    page = (await visit(replace(site, evalset=evalset)).get(f"{VIEWS[2]}&case=refused")).text

    assert commands(page) == [f"traceweir evalset add --to {evalset} --replace {session_id_of(0)}"]


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


async def test_without_the_token_pages_ask_for_it_and_the_api_refuses(site: Site, visit: Open) -> None:
    client = visit(replace(site, token=TOKEN))
    page, api = await client.get("/sessions"), await client.get("/api/overview", headers={"accept": "*/*"})

    assert (page.status_code, "Token needed" in page.text, "rail" in page.text) == (401, True, False)
    assert (api.status_code, api.json()["detail"][:12]) == (401, "the token is")
    assert (await client.get("/assets/style.css")).status_code == 200


async def test_a_wrong_token_is_refused_and_the_right_one_opens_the_pages(site: Site, visit: Open) -> None:
    client = visit(replace(site, token=TOKEN))
    wrong = await client.post("/login", data={"token": TOKEN[:-1]})
    right = await client.post("/login", data={"token": TOKEN})

    assert (wrong.status_code, "This is not the token." in wrong.text, wrong.headers.get("set-cookie")) == (
        401,
        True,
        None,
    )
    assert (right.status_code, right.headers["location"]) == (303, "/")
    assert TOKEN not in right.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict"} <= set(right.headers["set-cookie"].split("; "))
    assert (await client.get("/sessions")).status_code == 200
    client.cookies.set(COOKIE, "forged", domain="127.0.0.1")
    assert (await visit(replace(site, token=TOKEN), cookie=f"{COOKIE}=forged").get("/sessions")).status_code == 401


@pytest.mark.parametrize(
    ("address", "leads_to"),
    [
        ("/sessions?metric=a%20b&status=FAILED", "/sessions?metric=a%20b&status=FAILED"),
        ("/session?session_id=%F0%9F%9A%89%2F%3F", "/session?session_id=%F0%9F%9A%89%2F%3F"),
        ("/metrics", "/metrics"),
    ],
)
async def test_after_the_login_the_address_that_was_shared_is_opened(
    address: str, leads_to: str, site: Site, visit: Open
) -> None:
    client = visit(replace(site, token=TOKEN))
    asked = (await client.get(address)).text
    (hidden,) = [each for tag, each in Tags(asked).found if tag == "input" and each.get("name") == "address"]
    wrong = (await client.post("/login", data={"token": "x", "address": hidden["value"] or ""})).text
    (kept,) = [each for tag, each in Tags(wrong).found if tag == "input" and each.get("name") == "address"]
    right = await client.post("/login", data={"token": TOKEN, "address": kept["value"] or ""})

    assert (right.status_code, right.headers["location"]) == (303, leads_to)


@pytest.mark.parametrize(
    "address", ["https://evil.example/", "//evil.example/", "/\\evil.example", "/%0a\n/x", "javascript:1"]
)
async def test_the_login_leads_to_no_other_site(address: str, site: Site, visit: Open) -> None:
    client = visit(replace(site, token=TOKEN))
    right = await client.post("/login", data={"token": TOKEN, "address": address})

    assert right.headers["location"] == "/"


@pytest.mark.parametrize("headers", [{"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}])
async def test_a_page_of_another_site_can_send_nothing(headers: dict[str, str], site: Site, visit: Open) -> None:
    answer = await visit(replace(site, token=TOKEN), **headers).post("/login", data={"token": TOKEN})

    assert (answer.status_code, answer.json()["detail"][:22]) == (403, "a page of another site")


async def test_every_answer_forbids_inline_scripts_and_other_sites(site: Site, visit: Open) -> None:
    client = visit(site)
    for address in ("/", "/nothing", "/api/state", "/assets/style.css"):
        policy = (await client.get(address)).headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy


async def test_a_search_finds_only_what_the_page_may_show(site: Site, visit: Open) -> None:
    async def found(content: Content, text: str) -> int:
        page = (await visit(replace(site, content=content)).get("/sessions", params={"text": text, "span": "30d"})).text
        return page.count('href="/session?')

    assert await found("full", SECRET.upper()) == 50
    assert await found("redacted", SECRET) == 0
    assert await found("redacted", "busan") == 50
    assert await found("none", "busan") == 0
    assert await found("redacted", session_id_of(3)) == await found("none", session_id_of(3)) == 1


async def test_sessions_are_found_by_the_range_of_a_metric(site: Site, visit: Open) -> None:
    query = {"metric": "trace_value", "least": "0.2", "most": "0.4", "span": "7d"}
    page = (await visit(site).get("/sessions", params=query)).text
    values = [float(each) for each in re.findall(r"trace value (0\.\d+)<", page)]

    assert values
    assert all(0.2 <= each <= 0.4 for each in values)


async def test_a_config_or_agent_version_that_is_new_in_the_span_is_marked(site: Site, visit: Open) -> None:
    page = (await visit(site).get("/")).text

    assert "New in this time range:" in page
    assert "rail-agent 2.4.0" in page


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


async def test_a_page_of_a_long_session_says_what_it_leaves_out(
    tmp_path_factory: pytest.TempPathFactory, visit: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_module, "MAX_RESULTS", 2)
    site = Site(open_store(tmp_path_factory.mktemp("long") / "store.duckdb"), now=NOW)
    site.add(*(make_score("long", value=0.1, segment=n, result_id=f"result-{n}") for n in range(5)))
    page = (await visit(site).get("/session?session_id=long")).text

    assert "3 earlier results are not shown" in page
    assert "replaced results are not shown" not in page


@pytest.mark.parametrize("query", ["", "&status=FAILED", "&text=busan"])
async def test_the_link_to_older_sessions_reaches_every_session_once(query: str, site: Site, visit: Open) -> None:
    client, found, link = visit(site), [], f"/sessions?span=7d&agent_name=rail-agent{query}"
    for _ in range(9):
        page = (await client.get(link)).text
        found += re.findall(r'<a class="mono" href="/session\?[^"]*session_id=([^"&]*)"', page)
        older = re.search(r'rel="next" href="([^"]*)"', page)
        if older is None:
            break
        link = older[1].replace("&amp;", "&")
        assert "agent_name=rail-agent" in link

    assert len(found) == len(set(found))
    if "FAILED" not in query:
        assert found == [session_id_of(number) for number in range(60)]


async def test_the_api_links_older_sessions_with_the_same_parameters(site: Site, visit: Open) -> None:
    client, found, link = visit(site), [], "/api/sessions?limit=25&agent_name=rail-agent&since=2026-01-01T00:00:00Z"
    for _ in range(9):
        answer = await client.get(link)
        found += [each["session_id"] for each in answer.json()]
        if "link" not in answer.headers:
            break
        link = answer.links["next"]["url"]
        assert "limit=25&agent_name=rail-agent&since=" in link

    assert found == [session_id_of(number) for number in range(60)]


async def test_a_session_id_with_any_characters_is_a_place_in_the_list(
    tmp_path_factory: pytest.TempPathFactory, visit: Open
) -> None:
    names = [f" {at} &,\u20ac\x01'>; rel=prev" + "x" * 990 for at in range(3)]
    site = Site(open_store(tmp_path_factory.mktemp("names") / "store.duckdb"), now=NOW + timedelta(minutes=1))
    site.add(*(make_score(each, value=0.1) for each in names))
    client, found, link = visit(site), [], "/api/sessions?limit=1&status=FAILED"
    for _ in range(4):
        answer = await client.get(link)
        found += [each["session_id"] for each in answer.json()]
        if "link" not in answer.headers:
            break
        link = answer.links["next"]["url"]
        assert (await client.get(link.replace("/api/sessions?limit=1&", "/sessions?"))).status_code == 200

    assert found == names


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

    assert "records of these sessions" in known
    assert (await visit(site).get("/api/overview?since=2026-01-01T00:00:00Z")).json()["coverage"]["records"] == 60 * 10
    assert "records of these sessions" not in unknown
    assert "This begins with closed sessions: the store does not know their records." in unknown


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
    page = (await visit(site).get(VIEWS[-1])).text
    assert "<bdi>agent version 2.4.0</bdi> minus <bdi>agent version 2.3.1</bdi>" in page
    assert "No session is on both sides, so there are no pairs." in page


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


async def test_the_result_of_a_comparison_is_before_its_form(site: Site, visit: Open) -> None:
    page = (await visit(site).get(VIEWS[7])).text

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


async def test_a_metric_has_its_name_once_with_the_level_of_sessions_first(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    turn: dict[str, Any] = {"level": "invocation", "invocation_id": "i", "result_id": "turn"}
    site.add(make_score("a", "match", 1.0, **turn), make_score("a", "match", 1.0), make_score("a", "other", 1.0))

    page = (await visit(site).get("/metrics")).text

    table = page[page.index("<tbody>") : page.index("</tbody>")]
    assert re.findall(r"<bdi>(\w+)</bdi>", table) == ["match", "other"]
    assert re.findall(r'<span class="dim">(session|invocation)</span>', table) == ["session", "invocation", "session"]


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


@pytest.mark.parametrize("view", ["/not-scored", "/dead-letters"])
async def test_what_is_missing_has_a_chart(view: str, site: Site, visit: Open) -> None:
    page = (await visit(site).get(f"{view}?span=7d")).text
    assert 'class="chart"' in page
    assert 'aria-label="Figures of the chart"' in page


async def test_times_are_elements_that_name_their_moment_and_fields_take_iso(site: Site, visit: Open) -> None:
    page = (await visit(site).get("/sessions?since=2026-01-30T00:00Z&until=2026-01-31T12:01Z")).text
    assert '<time datetime="2026-01-31T12:00:00Z">2026-01-31 12:00:00</time>' in page
    assert 'name="since" value="2026-01-30T00:00Z"' in page
    assert "datetime-local" not in page


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
