"""The API's document is valid OpenAPI 3.1, every answer is as it says, and every problem is a sentence."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator, FormatChecker
from tests.support.alerts import make_alert, send_alerts
from tests.support.anchors import standing_of
from tests.support.dashboard_site import Site, session_id_of
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.streams.board.dashboard.access import Tokens, guarded
from traceweir.streams.board.dashboard.api.building import EVENTS, OPENAPI
from traceweir.streams.board.dashboard.application import routes
from traceweir.streams.board.dashboard.context import Dashboard, DashboardOptions
from traceweir.streams.board.dashboard.live import Live
from traceweir.streams.board.store.errors import StoreError

pytestmark = pytest.mark.slow

ADMIN, LABEL, READ = (f"a-token-for-{right}" for right in ("admin", "label", "read"))
SHOWN = 29
"""The results of a criterion before `NOW`: the newest of 30 sessions ended at it."""
ALERT = make_alert()
ASKED = {
    "/api/v1/alert-slices": {"alert_id": ALERT.alert_id},
    "/api/v1/session": {"session_id": session_id_of(0)},
    "/api/v1/metric": {"metric": "hallucinations_v1"},
    "/api/v1/trust": {"metric": "hallucinations_v1"},
    "/api/v1/query": {"group_by": "metric,agent_version,judge", "interval": "1h", "statistic": "results,mean,usd"},
    "/api/v1/comparison": {"first_agent_version": "2.3.1", "second_agent_version": "2.4.0"},
    "/api/v1/diff": {"first_agent_version": "2.3.1", "second_agent_version": "2.4.0"},
}
"""The parameters of addresses that need some, or that answer more with some."""
Open = Callable[..., httpx.AsyncClient]


class Broken:
    """A store that fails in a way that nobody expected, or that its database has."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def query(self, sql: str, parameters: Any = None) -> Any:
        raise self.error


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    found = Site(open_store(tmp_path_factory.mktemp("store") / "store.duckdb"), now=NOW, anchors=standing_of(NOW))
    found.add_sessions(30)
    send_alerts(found.store, ALERT)
    return found


@pytest.fixture
async def visit() -> AsyncIterator[Open]:
    clients = []

    def connect(application: Any, **headers: str) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(application, raise_app_exceptions=False)
        clients.append(httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4180", headers=headers))
        return clients[-1]

    yield connect
    for each in clients:
        await each.aclose()


def with_tokens(site: Site, **tokens: Any) -> Any:
    options = DashboardOptions(lambda: site.state, "full", lambda: NOW)
    return guarded(Dashboard(site.store, options, Live()).serving(routes(with_login=False)), Tokens(**tokens))


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, each) for path, found in document["paths"].items() for method, each in found.items()]


def validator(document: dict[str, Any], operation: dict[str, Any], status: int) -> Draft202012Validator:
    """Returns what checks the JSON of an answer with this status."""
    schema = operation["responses"][str(status)]["content"]["application/json"]["schema"]
    return Draft202012Validator(
        {**schema, "components": document["components"]}, format_checker=FormatChecker(["date-time"])
    )


async def test_the_document_is_openapi_3_1(site: Site, visit: Open) -> None:
    document = (await visit(site.application()).get(OPENAPI)).json()

    assert document["openapi"].startswith("3.1.")
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(names)) == len(names)
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    for path, _, operation in operations(document):
        for parameter in operation.get("parameters", ()):
            Draft202012Validator.check_schema(parameter["schema"])
        for response in operation["responses"].values():
            assert response["description"], path
            for kind in response.get("content", {}).values():
                assert kind.keys() <= {"schema", "example", "examples"}, path  # `itemSchema` is of OpenAPI 3.2
                Draft202012Validator({"components": document["components"], **kind["schema"]}).check_schema(
                    kind["schema"]
                )


async def test_every_answer_has_the_documented_shape(site: Site, visit: Open) -> None:
    client = visit(site.application())
    document = (await client.get(OPENAPI)).json()
    answered = []
    for path, method, operation in operations(document):
        # One is a stream, one is text, and one asks Kafka.
        if method != "get" or path in (EVENTS, "/api/v1/prometheus") or path.endswith("challenger-diff"):
            continue
        answer = await client.get(path, params=ASKED.get(path, {"span": "7d"} if "span" in str(operation) else {}))
        assert answer.status_code == 200, (path, answer.text)
        validator(document, operation, 200).validate(answer.json())
        answered.append(path)
    assert len(answered) >= 14


async def test_every_problem_is_a_sentence_that_is_documented(site: Site, visit: Open) -> None:
    document = (await visit(site.application()).get(OPENAPI)).json()
    overview = document["paths"]["/api/v1/overview"]["get"]

    async def problem(application: Any, path: str = "/api/v1/overview", **headers: str) -> tuple[int, str]:
        answer = await visit(application, **headers).get(path)
        validator(document, overview, answer.status_code).validate(answer.json())
        return answer.status_code, answer.json()["detail"]

    def of(error: Exception) -> Any:
        return replace(site, store=Broken(error)).application()

    status, sentence = await problem(of(StoreError("the disk is full")))
    assert (status, sentence) == (503, "the disk is full")
    status, sentence = await problem(of(RuntimeError("a secret of the store")))
    assert (status, sentence) == (500, "the dashboard failed with RuntimeError; its log says where")
    assert (await problem(site.application(), "/api/v1/overview?span=2h"))[0] == 422
    assert (await problem(site.application(), "/api/v1/nowhere"))[0] == 404
    assert (await problem(site.application(), host="evil.example"))[0] == 421
    assert (await problem(with_tokens(site, read=READ)))[0] == 401


async def test_an_answer_that_comes_too_early_says_when_to_try_again(site: Site, visit: Open) -> None:
    broken: Any = Broken(StoreError("busy"))
    answer = await visit(replace(site, store=broken).application()).get("/api/v1/overview")

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


async def test_head_has_the_headers_of_get_and_no_body(site: Site, visit: Open) -> None:
    client = visit(site.application())
    for path in ("/", "/api/v1/overview", "/api/v1/state", "/healthz", OPENAPI, "/assets/style.css"):
        got = await client.get(path)
        head = await client.head(path)
        assert (head.status_code, head.content) == (200, b""), path
        assert head.headers["content-type"] == got.headers["content-type"]


async def test_the_head_of_a_stream_ends(site: Site, visit: Open) -> None:
    answer = await visit(site.application()).head(EVENTS)

    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert not site.live.streams


@pytest.mark.parametrize(
    ("path", "methods"), [("/api/v1/overview", "GET, HEAD"), ("/api/v1/labels", "GET, HEAD, POST")]
)
async def test_another_method_is_refused_with_those_that_are_answered(
    path: str, methods: str, site: Site, visit: Open
) -> None:
    answer = await visit(site.application()).delete(path)

    assert (answer.status_code, answer.headers["allow"]) == (405, methods)
    assert answer.json()["detail"]


async def test_an_address_without_a_version_is_that_of_the_present_version(site: Site, visit: Open) -> None:
    client = visit(site.application())
    without, versioned = [(await client.get(f"{api}/overview?span=6h")).json() for api in ("/api", "/api/v1")]

    assert without == versioned


@pytest.mark.parametrize(
    ("span", "hours"), [("1h", 1), ("6h", 6), ("24h", 24), ("7d", 7 * 24), ("30d", 30 * 24), (None, 24)]
)
async def test_a_span_has_the_name_that_it_has_on_pages(span: str | None, hours: int, site: Site, visit: Open) -> None:
    client = visit(site.application())
    given = {} if span is None else {"span": span}
    since = NOW.timestamp() - hours * 3600
    exact = {"since": NOW.fromtimestamp(since, NOW.tzinfo).isoformat(), "until": NOW.isoformat()}

    assert (await client.get("/api/v1/overview", params=given)).json() == (
        await client.get("/api/v1/overview", params=exact)
    ).json()


@pytest.mark.parametrize("text", ["0.5", "1769860800", "-1e9"])
async def test_a_number_is_no_time(text: str, site: Site, visit: Open) -> None:
    answer = await visit(site.application()).get("/api/v1/overview", params={"until": text})

    assert answer.status_code == 422
    assert answer.json()["detail"] == "until: Input should be a valid datetime such as 2026-01-31T12:00:00Z"


@pytest.mark.parametrize(
    ("token", "path", "method", "status"),
    [
        (READ, "/api/v1/overview", "GET", 200),
        (READ, "/healthz", "GET", 200),
        (READ, "/api/v1/case", "POST", 403),
        (READ, "/api/case", "POST", 403),
        (READ, "/session/case", "POST", 403),
        (LABEL, "/api/v1/overview", "GET", 200),
        (LABEL, "/api/v1/case", "POST", 422),
        (LABEL, "/api/case", "POST", 422),
        (LABEL, "/api/v1/overview", "POST", 403),
        (LABEL, "/api/v1/case", "DELETE", 405),
        (ADMIN, "/api/v1/overview", "POST", 405),
        (ADMIN, "/api/v1/case", "POST", 422),
        ("a-token-of-nobody", "/api/v1/overview", "GET", 401),
    ],
)
async def test_a_token_has_its_right_and_those_before(
    token: str, path: str, method: str, status: int, site: Site, visit: Open
) -> None:
    application = with_tokens(site, admin=ADMIN, label=LABEL, read=READ)
    answer = await visit(application, authorization=f"Bearer {token}").request(method, path, data={"session_id": "a"})

    assert answer.status_code == status
    assert status == 200 or answer.json()["detail"]


async def test_without_a_token_for_changes_nobody_changes_anything(site: Site, visit: Open) -> None:
    answer = await visit(with_tokens(site, read=READ), authorization=f"Bearer {READ}").post(
        "/api/v1/case", data={"session_id": "a"}
    )

    assert answer.status_code == 403
    assert answer.json()["detail"] == "the token has the right 'read', and this needs 'label': send another token"


async def test_figures_are_divided_by_groups_and_intervals(site: Site, visit: Open) -> None:
    client = visit(site.application())
    asked = {"metric": "hallucinations_v1", "span": "7d", "statistic": "results,passed,failed"}

    async def rows(**more: str) -> Any:
        return (await client.get("/api/v1/query", params=asked | more)).json()["rows"]

    (whole,) = await rows(group_by="none")
    results = whole["passed"] + whole["failed"]
    assert whole == {"time": "2026-01-24T12:00:00Z", "results": results, **whole}
    assert results == SHOWN
    for more in ({"group_by": "agent_version"}, {"group_by": "none", "interval": "6h"}, {"interval": "1m"}):
        parts = await rows(**more)
        assert len(parts) > 1
        assert sum(each["results"] for each in parts) == SHOWN
    assert {each["agent_version"] for each in await rows(group_by="agent_version")} == {"2.3.1", "2.4.0"}
    assert await rows(level="session") == []


async def test_figures_as_csv_have_the_rows_of_json(site: Site, visit: Open) -> None:
    client = visit(site.application())
    asked = {"span": "7d", "group_by": "metric,judge", "statistic": "results,pass_rate"}
    rows = (await client.get("/api/v1/query", params=asked)).json()["rows"]
    answer = await client.get("/api/v1/query", params={**asked, "format": "csv"})

    assert answer.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    head, *lines = answer.text.splitlines()
    assert head == "time,metric,judge,results,pass_rate"
    assert lines == [",".join("" if cell is None else str(cell) for cell in row.values()) for row in rows]


async def test_no_program_for_tables_computes_a_name_of_an_agent(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    site.add(make_score(agent_version="=HYPERLINK(1)", value=-0.5))
    answer = await visit(site.application()).get(
        "/api/v1/query?format=csv&group_by=agent_version&statistic=mean&interval=none"
    )

    assert answer.text.splitlines()[1].endswith(",'=HYPERLINK(1),-0.5")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("statistic=median", "statistic: 'median' is none of results, evaluated"),
        ("statistic=mean,mean", "statistic: 'mean' is named more than once"),
        ("group_by=metric,drop%20table", "group_by: 'drop table' is none of metric, level"),
        ("interval=1m&since=2020-01-01T00:00:00Z", "the span has more than 11000 intervals of 60 s"),
    ],
)
async def test_a_question_that_cannot_be_answered_is_refused(query: str, message: str, site: Site, visit: Open) -> None:
    answer = await visit(site.application()).get(f"/api/v1/query?{query}")

    assert answer.status_code == 422
    assert message in answer.json()["detail"]
