"""Labels and feedback are taken from those who may send them, and reach the topic with the name of who sent them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, open_store, scores_batch

from traceweir.schemas.labels import Label
from traceweir.streams.base.errors import NotReadyError
from traceweir.streams.board.dashboard.access import LARGEST_LABEL_BYTES, KnownClient, Tokens, digest_of
from traceweir.streams.board.dashboard.application import create_application
from traceweir.streams.board.dashboard.content import Content
from traceweir.streams.board.dashboard.context import Dashboard, DashboardOptions
from traceweir.streams.board.dashboard.feed import FeedState
from traceweir.streams.board.dashboard.live import Live
from traceweir.streams.board.store.duckdb_store import DuckDBStore

pytestmark = pytest.mark.slow

READ, LABEL, ADMIN, FEEDBACK = (f"a-token-for-{right}" for right in ("read", "label", "admin", "feedback"))
TOKENS = Tokens(admin=ADMIN, label=LABEL, read=READ, feedback=FEEDBACK)
GIVEN: dict[str, Any] = {"session_id": "s-1", "criterion": "helpful", "verdict": "fail"}
Write = Callable[[Sequence[Label]], None]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DuckDBStore:
    return open_store(tmp_path_factory.mktemp("store") / "store.duckdb")


@pytest.fixture
def taken() -> list[Label]:
    return []


def client_of(
    store: DuckDBStore, write: Write | None, tokens: Tokens = TOKENS, content: Content = "full"
) -> httpx.AsyncClient:
    options = DashboardOptions(FeedState, content, lambda: NOW, write_labels=write)
    transport = httpx.ASGITransport(create_application(Dashboard(store, options, Live()), tokens))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4180")


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def test_a_label_has_the_name_of_its_token(store: DuckDBStore, taken: list[Label]) -> None:
    asked = {**GIVEN, "segment": 0, "revision": 2, "drawn": "random", "inclusion_probability": 0.1, "note": "why"}
    async with client_of(store, taken.extend) as client:
        answer = await client.post("/api/v1/labels", json=asked, headers=bearer(LABEL))
    (label,) = taken
    assert (answer.status_code, answer.json()) == (200, {"label_id": label.label_id})
    assert (label.annotator, label.self_declared, label.kind) == ("label token", False, "review")
    assert (label.subject.revision, label.inclusion_probability, label.note) == (2, 0.1, "why")
    assert label.occurred_at == NOW


async def test_a_name_that_the_sender_declares_is_marked(store: DuckDBStore, taken: list[Label]) -> None:
    async with client_of(store, taken.extend) as client:
        await client.post("/api/v1/labels", json=GIVEN | {"annotator": "ana"}, headers=bearer(LABEL))
    async with client_of(store, taken.extend, Tokens()) as client:
        await client.post("/api/v1/labels", json=GIVEN)
    assert [(each.annotator, each.self_declared) for each in taken] == [("ana", True), ("this machine", True)]


async def test_the_name_of_another_token_cannot_be_declared(store: DuckDBStore, taken: list[Label]) -> None:
    async with client_of(store, taken.extend) as client:
        for name in ("admin token", "this machine", " Admin  token", "\uff41dmin token"):
            refused = await client.post("/api/v1/labels", json=GIVEN | {"annotator": name}, headers=bearer(LABEL))
            assert refused.status_code == 422
            assert f"annotator: '{name}' is the name of another client" in refused.json()["detail"]
        await client.post("/api/v1/labels", json=GIVEN | {"annotator": "label token"}, headers=bearer(LABEL))
    assert [(each.annotator, each.self_declared) for each in taken] == [("label token", False)]


async def test_a_token_with_a_name_proves_it_and_nobody_else_can_declare_it(
    store: DuckDBStore, taken: list[Label]
) -> None:
    people = tuple(KnownClient(name, "label", digest_of(f"the-token-of-{name}")) for name in ("ana", "ben"))
    tokens = Tokens(admin=ADMIN, feedback=FEEDBACK, named=people)
    async with client_of(store, taken.extend, tokens) as client:
        for given in (GIVEN, GIVEN | {"annotator": "ana"}, GIVEN | {"annotator": "cleo"}):
            await client.post("/api/v1/labels", json=given, headers=bearer("the-token-of-ana"))
        for token in ("the-token-of-ben", ADMIN, FEEDBACK):
            refused = await client.post("/api/v1/feedback", json=GIVEN | {"annotator": "ana"}, headers=bearer(token))
            assert refused.status_code == 422
            assert "annotator: 'ana' is the name of another client" in refused.json()["detail"]
    assert [(each.annotator, each.self_declared) for each in taken] == [
        ("ana", False), ("ana", False), ("cleo", True)
    ]  # fmt: skip


async def test_feedback_is_of_the_kind_user_and_names_session_and_invocation(
    store: DuckDBStore, taken: list[Label]
) -> None:
    asked = GIVEN | {"invocation_id": "i-1", "annotator": "user-7"}
    async with client_of(store, taken.extend) as client:
        for path in ("/api/v1/feedback", "/api/feedback"):
            answer = await client.post(path, json=asked, headers=bearer(FEEDBACK))
            assert answer.status_code == 200
        refused = await client.post("/api/v1/feedback", json=asked | {"kind": "review"}, headers=bearer(FEEDBACK))
    first, second = taken
    assert first == second
    assert (first.kind, first.calibrates, first.self_declared) == ("user", False, True)
    assert (first.subject.session_id, first.subject.level, first.subject.invocation_id) == ("s-1", "invocation", "i-1")
    assert refused.status_code == 422


@pytest.mark.parametrize(
    ("token", "labels", "feedback"),
    [(None, 401, 401), ("a-token-that-expired", 401, 401), (READ, 403, 403), (FEEDBACK, 403, 200), (LABEL, 200, 200)],
)
async def test_only_who_may_is_heard(
    store: DuckDBStore, taken: list[Label], token: str | None, labels: int, feedback: int
) -> None:
    headers = {} if token is None else bearer(token)
    async with client_of(store, taken.extend) as client:
        for path, expected in (("/api/v1/labels", labels), ("/api/v1/feedback", feedback)):
            assert (await client.post(path, json=GIVEN, headers=headers)).status_code == expected
    assert len(taken) == [labels, feedback].count(200)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"verdict": "good"}, "verdict: Input should be 'pass', 'fail' or 'unsure'"),
        ({"verdict": None}, "a label needs exactly one of verdict, value, category"),
        ({"value": 3}, "verdict and value are given"),
        ({"drawn": "random"}, "the probability must be present exactly when"),
        ({"colour": "red"}, "colour: Extra inputs are not permitted"),
        ({"invocation_id": "i", "trace_id": "t"}, "a label of the level invocation has no trace_id"),
        ({"session_id": ""}, "session_id: String should have at least 1 character"),
        ({"occurred_at": "yesterday"}, "occurred_at: "),
        (
            {"occurred_at": "2999-01-01T00:00:00Z"},
            "occurred_at: 2999-01-01T00:00:00+00:00 is more than 5 minutes ahead",
        ),
        ({"occurred_at": "9999-12-31T23:59:59-14:00"}, "is more than 5 minutes ahead of now"),
        ({"occurred_at": "0001-01-01T00:00:00+14:00"}, "occurred_at: 0001-01-01T00:00:00+14:00 is before 1970"),
        ({"verdict": None, "value": True}, "value: Input should be a valid number"),
        ({"segment": 0, "revision": True}, "revision: Input should be a valid integer"),
        ({"segment": False}, "segment: Input should be a valid integer"),
        ({"drawn": "random", "inclusion_probability": True}, "inclusion_probability: Input should be a valid number"),
    ],
)
async def test_what_is_no_label_is_refused_with_the_rule(
    store: DuckDBStore, taken: list[Label], changed: dict[str, Any], sentence: str
) -> None:
    async with client_of(store, taken.extend) as client:
        answer = await client.post("/api/v1/labels", json=GIVEN | changed, headers=bearer(ADMIN))
    assert answer.status_code == 422
    assert sentence in answer.json()["detail"]
    assert taken == []


@pytest.mark.parametrize(
    ("body", "content_type", "sentence"),
    [
        (b"{nope", "application/json", "the body is no JSON at character 1 ("),
        (b"[]", "application/json", "the body is no JSON object: send one"),
        (b'{"session_id": "s"}', "text/plain", "with the header `content-type: application/json`"),
        (b"", "application/json", "the body is no JSON object: send one"),
    ],
)
async def test_a_body_that_is_no_json_object_is_refused_with_the_rule(
    store: DuckDBStore, taken: list[Label], body: bytes, content_type: str, sentence: str
) -> None:
    async with client_of(store, taken.extend) as client:
        headers = bearer(FEEDBACK) | {"content-type": content_type}
        answer = await client.post("/api/v1/feedback", content=body, headers=headers)
    assert (answer.status_code, taken) == (422, [])
    assert sentence in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b'{"session_id": "s\xff"}', "the body is no UTF-8 at byte 18: send a JSON object in UTF-8"),
        (b"[" * 30_000, "the body has too many lists or objects in each other: send the JSON object"),
        (b'{"note": ' * 7_000, "the body has too many lists or objects in each other: send the JSON object"),
    ],
)
async def test_a_body_that_no_parser_reads_is_refused_with_the_way_out(
    store: DuckDBStore, taken: list[Label], body: bytes, sentence: str
) -> None:
    async with client_of(store, taken.extend) as client:
        headers = bearer(FEEDBACK) | {"content-type": "application/json"}
        answer = await client.post("/api/v1/feedback", content=body, headers=headers)
    assert (answer.status_code, taken) == (400, [])
    assert sentence in answer.json()["detail"]


async def test_a_label_of_a_clock_that_is_a_little_ahead_is_taken(store: DuckDBStore, taken: list[Label]) -> None:
    ahead = {"occurred_at": (NOW + timedelta(minutes=4)).isoformat()}
    async with client_of(store, taken.extend) as client:
        answer = await client.post("/api/v1/feedback", json=GIVEN | ahead, headers=bearer(FEEDBACK))
    assert (answer.status_code, len(taken)) == (200, 1)


async def test_a_large_request_is_refused_before_it_is_read(store: DuckDBStore, taken: list[Label]) -> None:
    async def endless() -> Any:
        yield b"{"

    async with client_of(store, taken.extend) as client:
        large = await client.post(
            "/api/v1/feedback", content=b" " * (LARGEST_LABEL_BYTES + 1), headers=bearer(FEEDBACK)
        )
        unknown = await client.post("/api/v1/feedback", content=endless(), headers=bearer(FEEDBACK))
        zeros = bearer(FEEDBACK) | {"content-length": "0" * 20 + str(LARGEST_LABEL_BYTES + 1)}
        padded = await client.post("/api/v1/feedback", content=b" ", headers=zeros)
    assert (large.status_code, unknown.status_code, padded.status_code) == (413, 413, 413)


async def test_an_origin_that_is_no_address_is_refused(store: DuckDBStore, taken: list[Label]) -> None:
    async with client_of(store, taken.extend) as client:
        answer = await client.post("/api/v1/labels", json=GIVEN, headers=bearer(LABEL) | {"origin": "http://["})
    assert (answer.status_code, taken) == (403, [])


async def test_a_label_that_kafka_does_not_take_is_not_lost_in_silence(store: DuckDBStore) -> None:
    def refuse(labels: Sequence[Label]) -> None:
        raise NotReadyError("topic 'traceweir.labels' does not exist: run `traceweir topics create`")

    for write, sentence in ((refuse, "topics create"), (None, "this dashboard has no Kafka")):
        async with client_of(store, write) as client:
            answer = await client.post("/api/v1/labels", json=GIVEN, headers=bearer(LABEL))
        assert answer.status_code == 503
        assert sentence in answer.json()["detail"]


async def test_labels_are_read_beside_their_scores_and_notes_are_redacted(tmp_path: Path) -> None:
    store = open_store(tmp_path / "labelled.duckdb")
    store.write(scores_batch(make_score("s-1", "helpful", 0.9)))
    subject = {"session_id": "s-1", "segment": 0, "revision": 0, "level": "session"}
    label = Label.model_validate(
        {
            "label_id": "l",
            "subject": subject,
            "criterion": "helpful",
            "verdict": "fail",
            "annotator": "ana",
            "kind": "review",
            "occurred_at": NOW,
            "note": "ask kim@example.com",
        }
    )
    store.write(batch_of("labels", FakeRecord(label.wire(), key=b"l")))
    async with client_of(store, None, content="redacted") as client:
        answer = await client.get("/api/v1/labels", params={"criterion": "helpful"}, headers=bearer(READ))
    (found,) = answer.json()
    assert (found["standing"], found["score"]["value"], found["verdict"]) == ("current", 0.9, "fail")
    assert "kim@example.com" not in found["note"]
