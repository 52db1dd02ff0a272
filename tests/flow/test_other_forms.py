"""Events in another form than the schema's join their session in the schema's form, and others are not changed."""

from __future__ import annotations

import orjson
import pytest
from tests.support.flow import TOPICS, assemble_only

from traceweir.schemas.dead_letter import DeadLetter
from traceweir.schemas.session import Session
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.testing import event

SECOND_ONE_MS = 1767225601250


async def test_an_event_in_another_form_joins_its_session_in_the_schemas_form() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event("invocation.started", invocation_id=None, user_content="Hi"), b"s")
    completed = event("invocation.completed", occurred_at=SECOND_ONE_MS, final_response="Hello.")
    flow.send(TOPICS.invocations, completed, b"s")
    flow.send(TOPICS.invocations, event("session.ended", at=2), b"s")
    await flow.finish()

    (record,) = flow.read(TOPICS.sessions)
    session = Session.model_validate_json(record.value or b"")
    assert [each["type"] for each in record.json["events"]] == [
        "invocation.started",
        "invocation.completed",
        "session.ended",
    ]
    assert record.json["events"][0]["user_content"] == {"parts": [{"text": "Hi"}], "role": "user"}
    assert "invocation_id" not in record.json["events"][0]
    assert session.events[1].occurred_at.isoformat() == "2026-01-01T00:00:01.250000+00:00"
    assert flow.counters("assemble") == {"consumed": 3, "joined": 3, "opened": 1, "closed": 1}


async def test_an_event_in_another_form_and_the_same_event_in_the_schemas_form_are_duplicates() -> None:
    flow = assemble_only()
    text = {"parts": [{"text": "Hi"}], "role": "user"}
    for content in ("Hi", text, "Hi"):
        flow.send(TOPICS.invocations, event("invocation.started", user_content=content), b"s")
    await flow.finish()

    assert flow.counters("assemble") == {"consumed": 3, "joined": 1, "duplicate": 2, "opened": 1, "closed": 1}


async def test_an_event_with_a_key_that_its_type_does_not_have_joins_as_it_is() -> None:
    value = orjson.dumps(event("session.ended", content="a note", author=None, reference={"tool_uses": []}))
    flow = assemble_only()
    flow.send(TOPICS.invocations, value, b"s")
    await flow.finish()

    (session,) = flow.sessions()
    assert session["events"] == [orjson.loads(value)]


async def test_a_stray_in_another_form_is_forwarded_unchanged_and_joined_at_home() -> None:
    flow = assemble_only(partitions=4)
    elsewhere = (partition_of(b"s", 4) + 1) % 4
    value = orjson.dumps(event("invocation.started", user_content="Hi"))
    flow.send(TOPICS.invocations, value, b"s", partition=elsewhere)
    await flow.finish()

    assert [record.value for record in flow.read(TOPICS.strays)] == [value]
    assert [session["events"][0]["user_content"]["role"] for session in flow.sessions()] == ["user"]


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        (orjson.dumps(event(occurred_at=12)), "occurred_at: 12 is not a time in the years 2001 to 2100"),
        (orjson.dumps(event(occurred_at="100")), "occurred_at: the text '100' is a number without a unit"),
        (orjson.dumps(event(app_name=None, model=7)), "model.called.model: Input should be a valid string (got 7)"),
        (
            orjson.dumps(event("tool.called", invocation_id=None, args={"n": "?"})).replace(b'"?"', b"1" * 30),
            "tool.called.invocation_id: Input should be a valid string (got null)",
        ),
    ],
    ids=["no time", "a number in a text", "another problem", "a number that rewriting would change"],
)
async def test_an_event_without_a_clear_meaning_is_a_dead_letter(value: bytes, detail: str) -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, value, b"s")
    flow.send(TOPICS.invocations, event("session.ended"), b"s")
    await flow.finish()

    (record,) = flow.read(TOPICS.dead_letters)
    letter = DeadLetter.read(record.key, record.value, record.headers)
    assert (letter.reason, letter.value) == ("invalid", value)
    assert letter.detail.startswith(detail)
    assert len(flow.sessions()) == 1


async def test_an_event_that_grows_beyond_the_limit_in_the_schemas_form_is_a_dead_letter() -> None:
    numbers = b"[" + b",".join([b"1e15"] * 100_000) + b"]"
    value = orjson.dumps(event("tool.called", invocation_id=None, args={"n": "?"})).replace(b'"?"', numbers)
    flow = assemble_only()
    flow.send(TOPICS.invocations, value, b"s")
    flow.send(TOPICS.invocations, event("session.ended"), b"s")
    await flow.finish()

    (letter,) = flow.dead_letters()
    assert (letter.reason, len(value) < 800_000) == ("too_large", True)
    assert [len(session["events"]) for session in flow.sessions()] == [1]
