"""Tests which tool calls of an invocation count as parallel."""

from __future__ import annotations

import json
from typing import Any

from tests.support.mlflow import mlflow_span, mlflow_trace
from tests.support.scoring import make_session

from traceweir.schemas.events import EVENT
from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    IntermediateData,
    Invocation,
    InvocationEvents,
    InvocationStep,
    Part,
)
from traceweir.schemas.mlflow_trace import read_mlflow_trace
from traceweir.schemas.turns import turns_of


def called(name: str, answer: str | None = None) -> FunctionCall:
    return FunctionCall(name=name, model_call_id=answer)


def groups(invocation: Invocation) -> list[str]:
    """Returns the names of the calls, those of one answer in one text."""
    return ["".join(call.name for call in answer) for answer in invocation.calls_by_answer]


def test_calls_of_a_flat_list_are_parallel_only_if_they_name_the_same_model_call() -> None:
    uses = [called("a"), called("b"), called("c", "m1"), called("d", "m1"), called("e", "m2"), called("f", "m1")]
    assert groups(Invocation(intermediate_data=IntermediateData(tool_uses=uses))) == ["a", "b", "cd", "e", "f"]
    assert groups(Invocation()) == []


def test_calls_of_one_event_of_adk_are_parallel() -> None:
    def step(*names: str) -> InvocationStep:
        return InvocationStep(content=Content(parts=[Part(function_call=called(name)) for name in names]))

    events = InvocationEvents(invocation_events=[step("a", "b"), step("c"), InvocationStep(), step("d")])
    assert groups(Invocation(intermediate_data=events)) == ["ab", "c", "d"]


def test_the_model_call_of_a_call_is_read_and_never_written() -> None:
    read = FunctionCall.model_validate({"name": "find", "modelCallId": "m1"})
    assert read.model_call_id == "m1"
    assert read.model_dump() == {"id": None, "name": "find", "args": None}


def event(kind: str, second: int, **body: Any) -> Any:
    envelope = {"type": kind, "session_id": "s", "occurred_at": f"2026-01-31T12:00:{second:02}Z"}
    return EVENT.validate_python({"invocation_id": "i", **envelope, **body}, strict=False)


def test_events_tell_the_model_call_also_where_another_invocation_goes_on() -> None:
    events = [
        event("invocation.started", 0, user_content={"parts": [{"text": "Go"}]}),
        event("tool.called", 1, name="a", call_id="1", model_call_id="m1"),
        event("tool.called", 2, name="b", call_id="2", model_call_id="m1"),
        event("tool.called", 3, name="c", call_id="3"),
        event("tool.returned", 4, name="a", call_id="1", invocation_id="later"),
        event("tool.called", 5, name="d", call_id="4", model_call_id="m2", invocation_id="later"),
        event("tool.called", 6, name="e", call_id="5", model_call_id="m2", invocation_id="later"),
    ]
    (turn,) = turns_of(make_session(events=events))
    assert groups(turn.invocation) == ["ab", "c", "de"]


def test_calls_of_one_message_of_mlflow_are_parallel() -> None:
    def message(*names: str) -> dict[str, Any]:
        calls = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in names]
        return {"role": "assistant", "tool_calls": calls}

    first = [{"role": "user", "content": "Go"}, message("a", "b")]
    spans = [
        mlflow_span(name, "CHAT_MODEL", "root", attributes={"mlflow.chat.messages": json.dumps(messages)})
        for name, messages in (("one", first), ("two", [*first, message("c")]))
    ]
    found = read_mlflow_trace(mlflow_trace(mlflow_span("root", "CHAIN"), *spans))
    assert groups(Invocation(intermediate_data=IntermediateData(tool_uses=found.tool_uses))) == ["ab", "c"]
