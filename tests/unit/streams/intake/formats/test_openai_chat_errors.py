"""Tests the errors of chat transcripts that cannot be read."""

from __future__ import annotations

import io
import json
from typing import Any

import orjson
import pytest
from tests.support.openai_chat import (
    BOOKING,
    NOON,
    assistant_message,
    events_of,
    user_message,
)

from traceweir.streams.intake.formats.base import DocumentRecords, InputContext
from traceweir.streams.intake.formats.documents import InputError, read_documents
from traceweir.streams.intake.formats.openai_chat import OPENAI_CHAT, transcript_events


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "has none of 'messages', 'traj', 'contents', 'conversations' and 'choices'"),
        ({"messages": []}, "messages is a list of 0"),
        ({"traj": "x"}, "traj is 'x'"),
        ({"messages": ["x"]}, "messages[0] is 'x'"),
        (
            {"messages": [user_message("a"), {"role": "robot", "content": "b"}]},
            "messages[1].role is 'robot'; the role must be one of ",
        ),
        ({"messages": [{"content": "b"}]}, "messages[0].role is missing"),
        ({"messages": [user_message(7)]}, "messages[0].content is 7"),
        ({"messages": [user_message([7])]}, "messages[0].content[0] is 7"),
        ({"messages": [assistant_message(None, tool_calls={})], "x": 1}, "contains no message of an assistant"),
        (
            {"messages": [{"type": "TextMessage", "source": each, "content": "Hi"} for each in ("user", "desk")]},
            "(reasoning is neither), but 2 parts of type 'TextMessage', so there is nothing to score; write each message",
        ),
        ({"messages": [assistant_message([{"type": "image"}])]}, "but 1 part of type 'image', so there is nothing to"),
        ({"messages": [assistant_message(None, tool_calls={"a": 1})]}, "messages[0].tool_calls is an object with 'a'"),
        ({"messages": [assistant_message(None, tool_calls=[7])]}, "messages[0].tool_calls[0] is 7"),
        (
            {"messages": [assistant_message(None, tool_calls=[{"id": "c"}])]},
            "messages[0].tool_calls[0].function is missing",
        ),
        (
            {"messages": [assistant_message(None, function_call={"arguments": "{}"})]},
            "messages[0].function_call is an object",
        ),
        ({"messages": [user_message("anyone?")]}, "nothing to score"),
        ({"messages": [assistant_message("a")], "confidence": 1.5}, "outcome.confidence"),
        ({"messages": [assistant_message("a")], "success": "yes"}, "metadata.success"),
        ({"messages": [assistant_message("a")], "task_domain": ""}, "metadata.task_domain"),
        ({"messages": [assistant_message("a")], "created_at": "yesterday"}, "created_at must be seconds since 1970"),
        ({"messages": [assistant_message("a")], "created_at": "2026-03-01T12:00:00"}, "with its zone"),
        ({"messages": [assistant_message("a")], "created": 1e17}, "created must be seconds since 1970"),
        ({"messages": [assistant_message("a")], "created": True}, "created must be seconds since 1970"),
        (
            {"messages": [assistant_message("a")], "created_at": "0001-01-01T00:00:00+14:00"},
            "created_at must be seconds since 1970",
        ),
        (
            {"messages": [assistant_message("a")], "created_at": "9999-12-31T23:59:59-14:00"},
            "created_at must be seconds since 1970",
        ),
        (
            {"messages": [assistant_message("a")], "created_at": "9999-12-31T23:59:59.999Z"},
            "last day of the calendar, 9999-12-31",
        ),
        ({"messages": [assistant_message("a")], "created": 253402300799}, "created is on the last day of the calendar"),
        ({"messages": [assistant_message("a")], "session_id": ["s"]}, "session_id must be a string"),
        ({"messages": [assistant_message("a")], "session_id": "s" * 1025}, "session_id"),
    ],
)
def test_an_invalid_transcript_is_rejected_with_position_and_reason(document: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        transcript_events(orjson.loads(orjson.dumps(document)), 3, "chats.json", NOON)
    assert str(error.value).startswith("chats.json: document 3: ")
    assert message in str(error.value)


def read_chats(*documents: Any) -> list[DocumentRecords]:
    content = b"\n".join(d if isinstance(d, bytes) else orjson.dumps(d) for d in documents)
    return list(OPENAI_CHAT.read(read_documents(io.BytesIO(content)), InputContext("chats.jsonl")))


def test_an_invalid_transcript_does_not_affect_the_next_transcript() -> None:
    late = {"messages": BOOKING, "created_at": "9999-12-31T23:59:59.999Z"}
    found = read_chats(late, b"nonsense", b"[1]", {"messages": BOOKING})

    problems = [str(each.problem) for each in found if each.problem is not None]
    assert [problem.split(":")[1] for problem in problems] == [" document 1", " document 2", " document 3"]
    assert [len(each.records) for each in found] == [0, 0, 0, 11]


def test_a_second_transcript_with_the_same_session_id_is_rejected() -> None:
    one, other = (
        {"id": "s", "messages": BOOKING},
        {"id": "s", "messages": [user_message("go"), assistant_message("ok")]},
    )

    first, second, again = read_chats(one, other, one)

    assert (first.problem, again.problem) == (None, None)
    assert second.records == []
    assert "has the session id 's' of document 1, which is a different transcript" in str(second.problem)
    assert again.records == first.records


def nested(depth: int, inner: Any = 1) -> Any:
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.parametrize("inner", [1, 12345678901234567890123])
def test_an_error_of_a_request_that_is_nested_too_deeply_costs_only_its_document(inner: Any) -> None:
    failed = {"id": "1", "messages": [user_message("Why?")], "error": nested(300, inner)}
    answered = {"id": "2", "messages": [user_message("Why?"), assistant_message("So.")]}
    raw = b"\n".join(json.dumps(each).encode() for each in (failed, answered))

    found = list(OPENAI_CHAT.read(read_documents(io.BytesIO(raw)), InputContext("f", NOON)))

    problems = [str(each.problem) for each in found if each.problem]
    assert len(problems) == 1
    assert "error cannot be written as JSON" in problems[0]
    assert [bool(each.records) for each in found] == [False, True]


@pytest.mark.parametrize(
    "error",
    ["x" * 5_000, ["x" * 5_000], {"message": "x" * 5_000, "code": nested(300)}],
    ids=["text", "list", "message"],
)
def test_the_error_of_a_turn_has_a_bounded_length(error: Any) -> None:
    document = {"id": "1", "messages": [user_message("Why?")], "error": error}
    (completed,) = (
        event for event in events_of(transcript_events(document, 1, "f", NOON)) if event.type == "invocation.completed"
    )
    assert completed.error is not None
    assert len(completed.error) == 2_000
    assert completed.error.endswith("…")
