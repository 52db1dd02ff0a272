"""Whatever producers of records write: every page and every file shows it as text, and nothing executes it."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx
import orjson
import pytest
from fastapi.routing import iter_route_contexts
from tests.support.alerts import make_alert, resolved, send_alerts
from tests.support.anchors import standing_of
from tests.support.dashboard_site import Site, session_of
from tests.support.eval_runs import run_line, write_evals
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, open_store, send_labels

from traceweir.schemas.alert import Alert, AlertStream
from traceweir.schemas.dead_letter import DeadLetter
from traceweir.schemas.labels import Label, LabelSubject
from traceweir.schemas.pushed_config import ENVELOPE, PushedConfig
from traceweir.schemas.score import Score
from traceweir.streams.board.dashboard.application import routes as routes_of_dashboards
from traceweir.streams.board.dashboard.challengers import ChallengerInEffect, challengers_of
from traceweir.streams.board.dashboard.watched_streams import KnownStreams, ShownStream
from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.worker.config_topic import TopicState

pytestmark = pytest.mark.slow

MARKUP = (
    "</title></textarea><script>owned</script><img src=x onerror=owned><svg onload=owned>\"'><a href=javascript:owned>"
)
UNSEEN = "\x1b[2J\r\n\t\x00\x9b" + "\u202e\u2066\u200f"
HOSTILE = f"=cmd|' /C calc'!A0{MARKUP}{{{{ 7 * 7 }}}}{{% raw %}}../../etc/passwd{UNSEEN}"
HUGE = "=x" + "W" * 100_000
LABEL = HOSTILE.replace("\x00", "")[:200]
TOOL_NAME = HOSTILE[:200]
ASSETS = ["/assets/uPlot.iife.min.js", "/assets/charts.js", "/assets/state.js", "/assets/live.js"]
ATTRIBUTES = ("href", "src", "action", "formaction", "data-brush")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _of(path: str, **parameters: str) -> str:
    return f"{path}?{urlencode(parameters)}"


PAGES = {
    "/": ["/", "/?span=7d"],
    "/alerts": [
        "/alerts",
        _of("/alerts", alert_id=HOSTILE),
        _of("/alerts", metric=HOSTILE, older_than=HOSTILE),
        _of("/alerts", metric=HOSTILE, older_than=f"2026-01-31T12:00:00Z,{HOSTILE}"),
    ],
    "/anchors": ["/anchors"],
    "/sessions": [
        _of("/sessions", status="FAILED"),
        _of("/sessions", metric=HOSTILE, order="lowest"),
        _of("/sessions", label=f"{LABEL}={LABEL}", user_id=LABEL, order="failures"),
        _of("/sessions", text=HOSTILE, tool=TOOL_NAME, older_than=HOSTILE),
    ],
    "/session": [_of("/session", session_id=HOSTILE), _of("/session", session_id=HUGE[:50_000])],
    "/metrics": ["/metrics"],
    "/metric": [_of("/metric", metric=HOSTILE), _of("/metric", metric=HUGE[:1_000])],
    "/not-scored": ["/not-scored"],
    "/dead-letters": ["/dead-letters"],
    "/compare": ["/compare", _of("/compare", first_agent_version=LABEL, second_agent_version=HOSTILE)],
    "/review": [
        _of("/review", metric=HOSTILE, share="1", annotator=LABEL),
        _of("/review", metric=HOSTILE, stratum="flagged", given=HOSTILE, share="0.0001"),
    ],
    "/trust": [_of("/trust", metric=HOSTILE), _of("/trust", metric=HUGE[:1_000])],
    "/feedback": ["/feedback", _of("/feedback", app_name=HOSTILE), _of("/feedback", app_name=LABEL)],
    "/diff": [_of("/diff", first_agent_version=HOSTILE)],
    "/challenger": [_of("/challenger", name="v2"), _of("/challenger", name=HOSTILE[:90])],
    "/config": [_of("/config", digest=HOSTILE), _of("/config", digest=MARKUP)],
    "/evals": ["/evals"],
    "/evals/set": [_of("/evals/set", name="hostile.evalset.json"), _of("/evals/set", name=HOSTILE)],
    "/evals/run": [_of("/evals/run", name="hostile.jsonl"), _of("/evals/run", name=HOSTILE)],
    "/evals/compare": [_of("/evals/compare", first="first.jsonl", second="hostile.jsonl")],
}
"""Addresses of each page. A new page is named here."""
FORMS: dict[str, list[dict[str, Any]]] = {
    "/sessions/selection": [
        *({"form": form, "selected": [f"0,{quote(HOSTILE)}"]} for form in ("csv", "jsonl", "parquet", "api")),
        {"form": "api", "selected": [f"0,{quote(HOSTILE)}"], "query": HOSTILE},
        {"form": "evalset", "selected": [f"0,{quote(HOSTILE)}"], "evalset": "trips.evalset.json"},
        {"form": "evalset", "selected": ["0,s"], "evalset": HOSTILE},
        {"form": "csv", "selected": [HOSTILE]},
        {"form": HOSTILE},
    ],
    "/review/label": [
        {
            "about": urlencode({"session_id": HOSTILE}),
            "verdict": "pass",
            "address": "/review?metric=m&share=1",
            "note": HOSTILE,
        },
        {"about": HOSTILE, "verdict": HOSTILE, "address": HOSTILE},
        {"about": "session_id=s", "verdict": "fail", "address": _of("/review", metric=HOSTILE, annotator=LABEL)},
    ],
    "/review/withdraw": [
        {"label_id": HOSTILE, "address": _of("/review", metric=HOSTILE, annotator=LABEL)},
        {"label_id": "l", "address": "//evil.example"},
    ],
    "/session/case": [{"session_id": HOSTILE}],
    "/views": [{"name": HOSTILE, "address": HOSTILE}, {"name": "v", "address": "javascript:owned"}],
    "/views/remove": [{"name": HOSTILE, "address": "//evil.example"}],
}
"""What is sent to each form. A new form is named here."""


class HostileChallenger:
    """A challenger of a hostile selector, with hostile scores."""

    shadows = ("judge-b",)

    def __init__(self, scores: list[Score]) -> None:
        config = {"criteria": {"answered": {}}, "challenger": {"name": "v2", "sample": 0.1, "config": {"criteria": {}}}}
        pushed = pushed_by_hostile(1, config, quote(HOSTILE[:100], safe=""))
        self.in_effect: list[ChallengerInEffect] = challengers_of([pushed])
        self._scores = scores

    def scores(self, name: str) -> list[Score]:
        return self._scores


def pushed_by_hostile(number: int, config: dict[str, Any], selector: str = "*") -> PushedConfig:
    about = {"pushed_by": HOSTILE, "comment": HOSTILE, "traceweir": HOSTILE}
    return PushedConfig(
        envelope=ENVELOPE, selector=selector, version=number, digest=HOSTILE, config=config, pushed_at=NOW, **about
    )


def scores() -> list[Score]:
    """Returns results with a hostile text in each field that a producer of records chooses."""
    found = []
    for number in range(24):
        fields: dict[str, Any] = {
            **dict.fromkeys(("app_name", "agent_name", "agent_version", "environment", "user_id"), LABEL),
            **dict.fromkeys(("model", "judge", "config_digest", "scorer_version", "category", "rationale"), HOSTILE),
            "labels": {LABEL: LABEL, "tenant": LABEL},
            "details": {
                HOSTILE: HOSTILE,
                "reasons": [HOSTILE],
                "overrides": [HOSTILE],
                "nearest": {"trace_id": HOSTILE},
            },
            "occurred_at": NOW - timedelta(minutes=30 - number),
            "result_id": f"{number}-{HOSTILE}",
        }
        if number % 2:
            fields |= {"agent_version": "2", "config_digest": "other"}
        session_id = HOSTILE if number < 2 else f"{number}{HOSTILE}"
        metric = HUGE[:1_000] if number == 5 else HOSTILE
        missing = {"not_evaluated_because": "error", "cause": "judge_refused"} if number == 7 else {}
        found.append(make_score(session_id, metric, None if missing else number % 2, **fields, **missing))
        gate = {"level": "trace", "trace_id": HOSTILE, "result_id": f"gate-{number}", "status": "FAILED"}
        found.append(make_score(session_id, "gate", 0.0, **(fields | gate)))
    return found


def alerts() -> list[Alert]:
    """Returns an open alert and one that has ended, with a hostile text in each field that a producer of records chooses."""
    name = HOSTILE[:120]
    open_one = make_alert(
        HOSTILE,
        by={name: HOSTILE, "agent_version": HUGE[:50_000], "user_id": HOSTILE, f"labels.{name[:100]}": None},
        alert_id=HOSTILE[:500],
        rule=name,
        sessions=(HOSTILE, f"javascript:owned{HOSTILE}"),
        suspects=tuple(
            {"field": field, "value": HOSTILE, "first_seen": NOW} for field in (HOSTILE, "config_digest", "model")
        ),
    )
    return [open_one, resolved(open_one.model_copy(update={"alert_id": f"-{HOSTILE[:500]}"}))]


def labels() -> list[Label]:
    """Returns feedback with a hostile text in each field that a sender chooses."""
    given: dict[str, Any] = {
        "criterion": HOSTILE, "annotator": LABEL, "note": HOSTILE, "kind": "user", "occurred_at": NOW,
        "subject": LabelSubject(session_id=HOSTILE, level="session"),
    }  # fmt: skip
    return [
        Label(label_id="-said", verdict="pass", **given),
        Label(label_id=HOSTILE, category=HOSTILE, **{**given, "annotator": "=other"}),
    ]


def watched() -> KnownStreams:
    """Returns a stream with a hostile text in each field that an agent or a rule chooses."""
    stream = AlertStream(metric=HOSTILE, level="session", slice={HOSTILE[:120]: HOSTILE, "user_id": None})
    shown = ShownStream(
        rule=HOSTILE[:120],
        what="category",
        category=HOSTILE,
        stream=stream,
        state="watched",
        baseline=0.5,
        rhythm="hour",
        limit=None,
        interval_minutes=None,
        sessions_a_day=1.5,
        findable_in_a_day=None,
    )
    return KnownStreams(NOW, HOSTILE, [shown])


def session() -> dict[str, Any]:
    """Returns the record of a session, with a hostile text in each field."""

    def spoilt(value: Any, key: str = "") -> Any:
        kept = ("type", "occurred_at", "first_record_at", "last_record_at", "closed_because", "@type", "@context")
        if isinstance(value, dict):
            return {name: spoilt(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [spoilt(each, key) for each in value]
        if not isinstance(value, str) or key in kept or key.endswith("_at"):
            return value
        return LABEL if key in ("name", "invocation_id", "call_id", "app_name", "agent_version") else HOSTILE

    return {**spoilt(session_of(0, NOW, is_new=True)), "session_id": HOSTILE}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("hostile")
    evals = folder / "evals"
    write_evals(evals)
    cases = {"eval_set_id": HOSTILE, "eval_cases": [{"eval_id": HOSTILE, "conversation": [_turn()]}]}
    (evals / "hostile.evalset.json").write_bytes(orjson.dumps(cases))
    spoilt = dict.fromkeys(("prompt", "expected_response", "actual_response", "invocation_id"), HOSTILE)
    (evals / "hostile.jsonl").write_bytes(
        run_line(HOSTILE, "FAILED", 0.1, **spoilt, actual_tool_calls=[{"name": HOSTILE}])
    )
    site = Site(open_store(folder / "store.duckdb"), now=NOW, content="full", evals=evals, views=folder / "views.json")
    site.add(*scores())
    site.store.write(batch_of("sessions", FakeRecord(orjson.dumps(session()))))
    letter = DeadLetter("not_json", HOSTILE, "assemble", HOSTILE[:100], 1, 7, None, HOSTILE.encode())
    site.store.write(batch_of("dead-letters", FakeRecord(HOSTILE.encode(), headers=letter.wire_headers())))
    send_alerts(site.store, *alerts())
    send_labels(site.store, *labels())
    site.watched = watched()
    site.health = [Finding("broker", "failure", HOSTILE)]
    site.state.problem = HOSTILE
    site.anchors = standing_of(NOW, HOSTILE[:200], HOSTILE).model_copy(update={"problem": HOSTILE})
    site.challengers = HostileChallenger(scores())
    site.configs = TopicState()
    for number, config in ((1, {"criteria": {HOSTILE: HOSTILE}}), (2, {HOSTILE: {"criteria": [HUGE, 10**400]}})):
        site.configs.versions["*"][number] = pushed_by_hostile(number, config)
    site.now += timedelta(minutes=1)
    return site


def _turn() -> dict[str, Any]:
    text = {"parts": [{"text": HOSTILE}]}
    return {"user_content": text, "final_response": text, "intermediate_data": {"tool_uses": [{"name": HOSTILE}]}}


@pytest.fixture
async def client(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(site.application())
    headers = {"accept": "text/html", "origin": "http://127.0.0.1:4180"}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4180", headers=headers) as found:
        yield found


def routes(method: str) -> set[str]:
    found = iter_route_contexts(routes_of_dashboards(with_login=False).routes)
    return {
        each.path for each in found if each.path and method in (each.methods or ()) and each.include_in_schema is False
    }


def test_every_page_and_every_form_is_tried() -> None:
    pages = {path for path in routes("GET") if not path.startswith("/api/")}
    forms = {path for path in routes("POST") if not path.startswith("/api/")}
    assert pages == set(PAGES)
    assert forms == set(FORMS)


@pytest.mark.parametrize("address", [each for addresses in PAGES.values() for each in addresses])
async def test_every_page_is_inert(address: str, client: httpx.AsyncClient) -> None:
    answer = await client.get(address, follow_redirects=True)
    assert answer.status_code in (200, 404, 422), answer.status_code
    check_inert(answer)


@pytest.mark.parametrize(("path", "given"), [(path, each) for path, forms in FORMS.items() for each in forms])
async def test_every_answer_to_a_form_is_inert(path: str, given: dict[str, Any], client: httpx.AsyncClient) -> None:
    answer = await client.post(path, data=given)
    assert answer.status_code in (200, 303, 422), answer.status_code
    assert answer.headers.get("location", "/").startswith("/")
    assert not answer.headers.get("location", "/").startswith("//")
    if answer.headers.get("content-type", "").startswith("text/html"):
        check_inert(answer)
    elif answer.status_code == 200:
        assert re.fullmatch(r'attachment; filename="sessions\.\w+"', answer.headers["content-disposition"])


async def test_pages_show_the_texts(client: httpx.AsyncClient) -> None:
    """The pages above are inert because the texts are escaped, not because they are missing."""
    for path in (
        "/",
        "/alerts",
        "/anchors",
        "/sessions",
        "/session",
        "/metric",
        "/compare",
        "/feedback",
        "/config",
        "/evals/set",
        "/evals/run",
    ):
        page = (await client.get(PAGES[path][0])).text
        assert "&lt;script&gt;owned&lt;/script&gt;" in page, path
    run = (await client.get(PAGES["/evals/compare"][0])).text
    assert "&lt;script&gt;owned" in run


async def test_the_selected_session_is_the_one_of_the_row_whatever_its_id(client: httpx.AsyncClient) -> None:
    page = (await client.get(_of("/sessions", status="FAILED"))).text
    places = [
        dict(attributes)["value"]
        for tag, attributes in Elements(page).found
        if dict(attributes).get("name") == "listed"
    ]
    answer = await client.post("/sessions/selection", data={"listed": places, "every": "true", "form": "jsonl"})
    assert HOSTILE in {orjson.loads(line)["session_id"] for line in answer.text.splitlines()}


async def test_no_cell_of_csv_is_run_by_a_spreadsheet(client: httpx.AsyncClient) -> None:
    (given, *_) = FORMS["/sessions/selection"]
    tables = [(await client.post("/sessions/selection", data=given)).text]
    figures = urlencode({"metric": HOSTILE, "group_by": "agent_version", "span": "7d", "format": "csv"})
    tables.append((await client.get(f"/api/v1/query?{figures}")).text)
    for table in tables:
        rows = list(csv.reader(io.StringIO(table, newline="")))
        assert len(rows) > 1, table[:200]
        assert not [cell for row in rows for cell in row if cell.startswith(FORMULA)]


@pytest.mark.parametrize("content", ["redacted", "none"])
async def test_no_page_fails_on_what_is_hidden(content: Any, site: Site) -> None:
    transport = httpx.ASGITransport(replace(site, content=content).application())
    async with httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1:4180", headers={"accept": "text/html"}
    ) as client:
        for address in PAGES["/session"] + PAGES["/sessions"] + PAGES["/evals/run"]:
            check_inert(await client.get(address))


class Elements(HTMLParser):
    """Collects the elements of a page and its text as a browser reads it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def check_inert(answer: httpx.Response) -> None:
    """Checks that a page has no element, attribute, address or character that a text has brought in."""
    elements = Elements(answer.text)
    scripts = [dict(attributes).get("src") for tag, attributes in elements.found if tag == "script"]
    assert scripts in (ASSETS, [*ASSETS, "/assets/review.js"], [])
    tags = {tag for tag, _ in elements.found}
    assert not tags & {"img", "iframe", "object", "embed", "base", "style", "math", "template"}
    # The page for reviews has one of its own.
    assert [dict(attributes)["name"] for tag, attributes in elements.found if tag == "textarea"] in ([], ["note"])
    for tag, attributes in elements.found:
        named = dict(attributes)
        assert not [name for name in named if name.startswith("on") or name == "style"], (tag, named)
        for name in ATTRIBUTES:
            address = urlsplit(named.get(name) or "")
            assert (address.scheme, address.netloc) == ("", ""), (tag, named)
        if chart := named.get("data-chart"):
            assert not unseen(texts_of(orjson.loads(chart)))
        if tag != "input" and not chart:
            assert not unseen([value or "" for value in named.values()]), (tag, named)
    assert not unseen(elements.texts)
    assert "49" not in re.findall(r"W?\b(\d\d)../../etc", "".join(elements.texts))
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


def texts_of(value: Any) -> list[str]:
    """Returns the texts in a document of JSON."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in texts_of(each)]


def unseen(texts: list[str]) -> set[str]:
    """Returns the characters that a person does not see and that change what is seen around them."""
    found = {char for text in texts for char in text if unicodedata.category(char) in ("Cc", "Cf")}
    return found - {"\n", "\t"}
