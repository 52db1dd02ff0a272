"""The API answers from the store, says what is wrong with a request, and shows no more text than is configured."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import httpx
import orjson
import pytest
from tests.support.judge_retries import session as session_document
from tests.support.paths import ROOT
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, open_store, scores_batch

from traceweir.streams.board.dashboard.access import Tokens, guarded
from traceweir.streams.board.dashboard.api.building import OPENAPI
from traceweir.streams.board.dashboard.application import routes
from traceweir.streams.board.dashboard.content import Content
from traceweir.streams.board.dashboard.context import Dashboard, DashboardOptions
from traceweir.streams.board.dashboard.feed import FeedState
from traceweir.streams.board.dashboard.live import Live
from traceweir.streams.board.store.duckdb_store import DuckDBStore
from traceweir.streams.board.store.errors import StoreError
from traceweir.streams.lab.comparison.document import Diff

pytestmark = pytest.mark.slow

TOKEN = "a-token-of-20-letters"
SECRET = "Mail kim@example.com"

Client = Callable[..., httpx.AsyncClient]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DuckDBStore:
    opened = open_store(tmp_path_factory.mktemp("store") / "store.duckdb")
    opened.write(
        scores_batch(
            make_score(
                "a/b?c",
                value=0.1,
                rationale=SECRET,
                details={"quote": SECRET, "part": 1},
                app_name="shop",
                labels={"team": SECRET},
            ),
            make_score("b", value=None),
        )
    )
    document = session_document("a/b?c", last_record_at=NOW.isoformat())
    document["events"][0]["final_response"] = {"parts": [{"text": SECRET}]}
    opened.write(batch_of("sessions", FakeRecord(orjson.dumps(document))))
    return opened


@pytest.fixture
async def client(store: DuckDBStore) -> AsyncIterator[Client]:
    """Returns a function that gives a client of an API."""
    clients = []

    def connect(
        content: Content = "full",
        token: str | None = None,
        host: str = "127.0.0.1:4180",
        read: Any = None,
        **headers: str,
    ) -> httpx.AsyncClient:
        options = DashboardOptions(FeedState, content, lambda: NOW + timedelta(minutes=1))
        application = Dashboard(read or store, options, Live()).serving(routes(with_login=False))
        transport = httpx.ASGITransport(guarded(application, Tokens(token)))
        clients.append(httpx.AsyncClient(transport=transport, base_url=f"http://{host}", headers=headers))
        return clients[-1]

    yield connect
    for each in clients:
        await each.aclose()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("least=0.05&most=0.2", ["a/b?c"]),
        ("least=0.2", []),
        ("text=B%3FC", ["a/b?c"]),
        ("text=nowhere", []),
        (f"text={SECRET}", ["a/b?c"]),
    ],
)
async def test_sessions_are_found_by_the_range_of_a_value_and_by_text(
    query: str, found: list[str], client: Client
) -> None:
    assert [each["session_id"] for each in (await client().get(f"/api/sessions?{query}")).json()] == found


async def test_each_request_of_the_runbooks_is_answered(client: Client) -> None:
    page = (ROOT / "docs" / "alerts.md").read_text("utf-8")
    asked = set(re.findall(r"^curl -s http://127\.0\.0\.1:4180(\S+)$", page, re.MULTILINE))
    assert asked
    for path in asked:
        assert (await client().get(path)).status_code == 200, path


@pytest.mark.parametrize("content", ["redacted", "none"])
async def test_text_that_is_not_shown_finds_no_session(content: Content, client: Client) -> None:
    api = client(content)
    assert (await api.get("/api/sessions", params={"text": SECRET})).json() == []
    assert len((await api.get("/api/sessions", params={"text": "b?c"})).json()) == 1  # ids are always shown


async def test_the_openapi_document_describes_every_answer(client: Client) -> None:
    document = (await client().get(OPENAPI)).json()

    assert {name.removeprefix("/api/v1") for name in document["paths"]} == {
        *(
            "/state",
            "/overview",
            "/sessions",
            "/session",
            "/not-scored",
            "/dead-letters",
            "/query",
            "/healthz",
            "/case",
            "/labels",
            "/feedback",
        ),
        *("/metric", "/comparison", "/diff", "/values", "/events", "/judge-spending"),
        *("/challengers", "/shadows", "/challenger-diff", "/facets", "/trust", "/prometheus", "/alerts"),
        *("/alert-slices", "/alert-streams", "/anchors"),
    }
    for name, path in document["paths"].items():
        if name in ("/api/v1/events", "/api/v1/prometheus"):
            continue  # a stream of `/api/state`, and text
        for operation in path.values():
            schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
            assert "$ref" in schema or "$ref" in schema["items"]


async def test_a_session_with_any_id_is_found(client: Client) -> None:
    (listed,) = (await client().get("/api/sessions", params={"app_name": "shop", "status": "FAILED"})).json()
    found = (await client().get("/api/session", params={"session_id": listed["session_id"]})).json()

    assert (found["session_id"], len(found["results"]), len(found["segments"])) == ("a/b?c", 1, 1)


async def test_an_unknown_session_is_said_to_be_unknown_without_control_characters(client: Client) -> None:
    answer = await client().get("/api/session", params={"session_id": "x\x1b[31m"})

    assert answer.status_code == 404
    assert answer.json()["detail"].startswith("the store has no session 'x\\\\x1b[31m': it is older than")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("since=yesterday", "since: Input should be a valid datetime"),
        ("since=2026-01-01T00:00:00", "since: Input should have timezone info"),
        ("since=2027-01-01T00:00:00Z", "the time range ends at 2026-01-31 12:01:00 and begins at 2027-01-01 00:00:00"),
        ("until=0001-01-01T00:00:00Z", "date value out of range"),
        ("limit=0", "limit: Input should be greater than or equal to 1"),
        ("status=BROKEN", "status: Input should be 'PASSED', 'FAILED', 'NOT_EVALUATED' or 'INFORMATIONAL'"),
        (f"app_name={'x' * 2000}", "app_name: String should have at most 1024 characters"),
        ("from=2026-01-01T00:00:00Z", "'from' is not a parameter; choose from agent_name, agent_version"),
        ("limit=1&limit=2", "limit: given more than once"),
        ("since=0001-01-01T00:00:00%2B14:00", "the time range leaves the years 1 to 9999"),
    ],
)
async def test_a_parameter_out_of_its_range_is_refused_with_a_sentence(
    query: str, message: str, client: Client
) -> None:
    answer = await client().get(f"/api/sessions?{query}")

    assert answer.status_code == 422
    assert message in answer.json()["detail"]


@pytest.mark.parametrize(("content", "texts"), [("full", 4), ("redacted", 0), ("none", 0)])
async def test_text_of_agents_is_shown_as_configured(content: Content, texts: int, client: Client) -> None:
    answer = await client(content).get("/api/session", params={"session_id": "a/b?c"})

    assert answer.text.count("kim@example.com") == texts
    assert answer.text.count("[REDACTED:email]") == (4 if content == "redacted" else 0)
    (result,) = answer.json()["results"]
    assert (result["session_id"], result["value"], result["metric"]) == ("a/b?c", 0.1, "response_match_score")
    assert (answer.json()["segments"][0]["document"] is None) == (content == "none")


@pytest.mark.parametrize("given", ["", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN[:-1]}"])
async def test_without_the_token_nothing_is_answered(given: str, client: Client) -> None:
    for path in ("/api/state", OPENAPI, "/nowhere"):
        answer = await client(token=TOKEN, Authorization=given).get(path)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert answer.json()["detail"].startswith("the token is missing or wrong")


async def test_a_websocket_is_closed_and_reaches_no_application() -> None:
    sent: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("reached")

    async def send(message: Any) -> None:
        sent.append(message)

    await guarded(application, Tokens(TOKEN))({"type": "websocket", "headers": []}, None, send)  # type: ignore[arg-type]

    assert sent == [{"type": "websocket.close", "code": 1008}]


async def test_with_the_token_any_host_is_answered(client: Client) -> None:
    answer = await client(token=TOKEN, host="scores.example", Authorization=f"bearer {TOKEN}").get("/api/state")
    assert answer.json() == {"problem": None, "behind": None, "stored_rows": 0, "unreadable": {}, "health": []}


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:4180", 200),
        ("[::1]:4180", 200),
        ("127.0.0.2:4180", 200),
        ("[::1]", 200),
        ("10.0.0.1:4180", 421),
        ("127.0.0.1.evil.example:4180", 421),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
    ],
)
async def test_without_a_token_only_requests_to_this_machine_are_answered(
    host: str, status: int, client: Client
) -> None:
    assert (await client(host=host).get("/api/state")).status_code == status


async def test_answers_cannot_be_framed_sniffed_or_stored(client: Client) -> None:
    headers = (await client().get("/api/state")).headers
    assert "default-src 'none';" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")


async def test_a_store_that_cannot_answer_is_a_503_with_its_reason(client: Client) -> None:
    class Broken:
        def query(self, sql: str, parameters: Any = None) -> list[dict[str, Any]]:
            raise StoreError("the disk is gone")

    answer = await client(read=Broken()).get("/api/overview")
    assert (answer.status_code, answer.json()) == (503, {"detail": "the disk is gone"})


async def test_a_metric_has_its_values_slices_and_the_results_to_look_at(client: Client, versions: DuckDBStore) -> None:
    found = (await client(read=versions).get("/api/metric?metric=response_match_score")).json()

    assert [each["results"] for each in found["distribution"] if each["results"]] == [1] * 20
    assert (found["distribution"][0]["low"], found["distribution"][-1]["high"]) == (0.0, 0.95)
    assert [(each["dimension"], each["value"], each["difference"]) for each in found["slices"]["differing"]] == [
        ("agent_version", "1", -0.5),
        ("agent_version", "2", 0.5),
    ]
    assert [each["value"] for each in found["worst"]] == [at / 20 for at in range(10)]
    assert [each["value"] for each in found["nearest"]] == [0.7, 0.65, 0.6, 0.55, 0.5, 0.75, 0.8, 0.85, 0.9, 0.95]


async def test_a_metric_must_be_named(client: Client) -> None:
    answer = await client().get("/api/metric")

    assert (answer.status_code, answer.json()) == (422, {"detail": "metric: Field required"})


async def test_a_comparison_is_the_second_side_minus_the_first(client: Client, versions: DuckDBStore) -> None:
    query = "first_agent_version=1&second_agent_version=2"
    (found,) = (await client(read=versions).get(f"/api/comparison?{query}")).json()["metrics"]

    assert (found["first"]["passed"], found["second"]["passed"]) == (0, 5)
    assert (found["pass_rate_difference"], found["mean_difference"]) == (0.5, pytest.approx(0.5))
    assert 0 < found["pass_rate_difference_low"] < 0.5 < found["pass_rate_difference_high"] < 1
    assert found["mean_difference_low"] < 0.5 < found["mean_difference_high"]


async def test_a_diff_is_the_document_of_the_command(client: Client, versions: DuckDBStore) -> None:
    query = "first_agent_version=1&second_agent_version=2"
    found = Diff.model_validate_json((await client(read=versions).get(f"/api/diff?{query}")).content)

    assert (found.metrics[0].pairing, found.base.results, found.challenger.results) == ("unpaired", 10, 10)
    assert found.metrics[0].value is not None
    assert found.metrics[0].value.difference == pytest.approx(0.5)


async def test_a_diff_with_an_empty_side_says_what_each_side_has(client: Client, versions: DuckDBStore) -> None:
    answer = await client(read=versions).get("/api/diff?first_agent_version=3")
    assert answer.status_code == 422
    assert "first: has no results" in answer.json()["detail"]


async def test_a_side_without_results_has_no_difference(client: Client, versions: DuckDBStore) -> None:
    (found,) = (await client(read=versions).get("/api/comparison?first_agent_version=3")).json()["metrics"]

    assert (found["first"], found["pass_rate_difference"], found["mean_difference_low"]) == (None, None, None)


async def test_the_values_that_can_be_selected_are_listed(client: Client, versions: DuckDBStore) -> None:
    found = (await client(read=versions).get("/api/values?agent_version=1")).json()

    assert (found["dimensions"]["agent_version"], found["metrics"]) == (["1", "2"], ["response_match_score"])


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> DuckDBStore:
    """A store with the values 0.00, 0.05 ... 0.95, the lower half of version 1 and the upper half of version 2."""
    opened = open_store(tmp_path_factory.mktemp("versions") / "store.duckdb")
    opened.write(
        scores_batch(*(make_score(f"s{at}", value=at / 20, agent_version="1" if at < 10 else "2") for at in range(20)))
    )
    return opened
