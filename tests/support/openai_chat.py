"""Builds chat transcripts in the format of OpenAI, and reads the records that the product makes of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson

from traceweir.schemas.events import EVENT, InvocationEvent
from traceweir.schemas.session import ClosingReason, Session
from traceweir.schemas.trace import ReasoningTrace
from traceweir.streams.intake.formats.base import AgentRecord
from traceweir.streams.intake.formats.openai_chat import transcript_events

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def user_message(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant_message(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content} | more


def tool_calls(*uses: tuple[str, str, Any], content: str | None = None) -> dict[str, Any]:
    made = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in uses]
    return assistant_message(content, tool_calls=made)


def tool_result(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content} | more


BOOKING = [
    {"role": "system", "content": "Be kind."},
    user_message("A table for two, please."),
    tool_calls(("c1", "find_table", '{"seats": 2}'), content="Let me look."),
    tool_result("c1", "Error: the calendar is locked"),
    tool_calls(("c2", "find_table", '{"seats": 2, "retry": true}')),
    tool_result("c2", '{"table": 7}'),
    assistant_message("Table 7 is yours."),
    user_message("Thanks!"),
    assistant_message("See you."),
]


def convert(
    messages: list[Any], *, index: int = 1, source: str = "chats.json", base_time: datetime = NOON, **more: Any
) -> list[AgentRecord]:
    # The round trip through JSON makes a copy, so that the conversion cannot change the messages of the test.
    document = orjson.loads(orjson.dumps({"messages": messages} | more))
    return transcript_events(document, index, source, base_time)


def events_of(records: list[AgentRecord]) -> list[InvocationEvent]:
    return [EVENT.validate_json(record.value) for record in records if record.kind == "event"]


def trace_of(records: list[AgentRecord]) -> ReasoningTrace:
    (trace,) = [ReasoningTrace.model_validate_json(record.value) for record in records if record.kind == "trace"]
    return trace


def session_of(records: list[AgentRecord]) -> Session:
    return Session(
        session_id=records[0].session_id or "",
        segment=0,
        revision=0,
        closed_because=ClosingReason.SESSION_ENDED,
        first_record_at=NOON,
        last_record_at=NOON,
        events=events_of(records),
        traces=[trace_of(records)],
    )


def steps_of(messages: list[Any]) -> list[tuple[str, str | None, str | None]]:
    steps = trace_of(convert(messages)).steps
    return [(step.type, step.content, step.tool.name if step.tool else None) for step in steps]
