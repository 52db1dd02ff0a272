"""Events fold into invocations, in the order in which these began."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.support.scoring import NOW, make_session, make_trace

from traceweir.schemas.events import EVENT
from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    FunctionResponse,
    IntermediateData,
    RetrievedChunk,
    TokenUsage,
)
from traceweir.schemas.reference import Reference
from traceweir.schemas.turns import Turn, turns_of


def turns(*events: dict[str, Any], traces: Any = ()) -> list[Turn]:
    """The turns of events that happen a second apart."""
    read = [
        EVENT.validate_python({"session_id": "s", "occurred_at": NOW + timedelta(seconds=number), **event})
        for number, event in enumerate(events)
    ]
    return turns_of(make_session("s", events=read, traces=list(traces)))


def event(kind: str, invocation_id: str = "", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "invocation_id": invocation_id, **fields}


def said(text: str) -> dict[str, Any]:
    return {"parts": [{"text": text}]}


def ids(found: list[Turn]) -> list[str]:
    return [turn.invocation.invocation_id for turn in found]


def test_the_events_of_an_invocation_become_one() -> None:
    [turn] = turns(
        event("invocation.started", "i", user_content=said("Book a seat"), app_name="app", reference_id="r"),
        event("model.called", "i", model="m", input_tokens=5, output_tokens=2),
        event("tool.called", "i", name="book", args={"seats": 1}, call_id="c"),
        event("tool.returned", "i", name="book", call_id="c", response={"ok": True}),
        event("tool.returned", "i", name="book", error="no seat"),
        event("retrieval.returned", "i", chunks=[{"doc_uri": "d1"}]),
        event("retrieval.returned", "i", chunks=[{"doc_uri": "d2", "content": "x"}]),
        event("response.intermediate", "i", author="agent", content=said("One moment")),
        event("model.called", "i", model="m", input_tokens=7),
        event("invocation.completed", "i", final_response=said("Booked")),
    )
    invocation = turn.invocation
    assert (turn.app_name, turn.reference_id, turn.reference) == ("app", "r", None)
    assert invocation.user_content == Content(parts=Content.of("Book a seat").parts)
    assert invocation.final_response is not None
    assert invocation.final_response.text == "Booked"
    assert invocation.intermediate_data == IntermediateData(
        tool_uses=[FunctionCall(id="c", name="book", args={"seats": 1})],
        tool_responses=[
            FunctionResponse(id="c", name="book", response={"ok": True}),
            FunctionResponse(name="book", response={"error": "no seat"}),
        ],
        intermediate_responses=[("agent", Content.of("One moment").parts or [])],
    )
    assert invocation.retrieved_context == [RetrievedChunk(doc_uri="d1"), RetrievedChunk(doc_uri="d2", content="x")]
    assert invocation.token_usage == TokenUsage(input_tokens=12, output_tokens=2)
    assert invocation.creation_timestamp == NOW.timestamp()
    assert not invocation.derived


def test_what_no_event_said_is_absent() -> None:
    [turn] = turns(event("invocation.started", "i"))
    invocation = turn.invocation
    assert (invocation.final_response, invocation.token_usage, invocation.retrieved_context) == (None, None, None)
    assert invocation.tool_uses == []


def test_invocations_stand_in_the_order_in_which_they_began() -> None:
    found = turns(
        event("invocation.started", "b"),
        event("invocation.started", "a"),
        event("invocation.completed", "b"),
        event("invocation.completed", "a"),
    )
    assert ids(found) == ["b", "a"]


def test_an_event_without_an_id_belongs_to_the_invocation_that_began_last() -> None:
    found = turns(
        event("invocation.started", "a"),
        event("tool.called", name="one"),
        event("invocation.started", "b"),
        event("tool.called", name="two"),
    )
    assert [[use.name for use in turn.invocation.tool_uses] for turn in found] == [["one"], ["two"]]


def test_invocations_without_an_id_are_numbered_from_0() -> None:
    found = turns(
        event("invocation.started"),
        event("tool.called", name="x"),
        event("invocation.started"),
        event("invocation.started", "a"),
    )
    assert ids(found) == ["#0", "#1", "a"]


def test_a_tool_call_before_its_invocation_began_is_part_of_it() -> None:
    found = turns(event("tool.called", "a", name="x"), event("invocation.started", "a", user_content=said("hi")))
    assert ids(found) == ["a"]
    assert found[0].invocation.user_content is not None


def test_a_recorded_invocation_is_taken_whole() -> None:
    [turn] = turns(
        event(
            "invocation.recorded",
            invocation={"invocationId": "e1", "finalResponse": said("hi")},
            reference={"question": "q"},
        )
    )
    assert (turn.invocation.invocation_id, turn.reference) == ("e1", Reference(question="q"))


def test_the_envelopes_id_goes_before_that_of_the_recorded_invocation() -> None:
    found = turns(
        event("invocation.recorded", "outer", invocation={"invocation_id": "inner"}),
        event("invocation.recorded", invocation={}),
    )
    assert ids(found) == ["outer", "#1"]


def test_the_end_of_a_session_is_no_invocation() -> None:
    assert turns(event("session.ended")) == []


def test_a_trace_alone_gives_an_invocation_derived_from_it() -> None:
    trace = make_trace(
        steps=[
            {"step_id": 0, "type": "thought", "content": "t"},
            {"step_id": 1, "type": "tool_call", "tool": {"name": "find"}, "input": {"a": 1}},
            {"step_id": 2, "type": "observation", "tool": {"name": "find"}},
            {"step_id": 3, "type": "error_recovery", "tool": {"name": "retry"}},
            {"step_id": 4, "type": "error_recovery", "content": "Without a tool."},
            {"step_id": 5, "type": "thought", "tool": {"name": "find"}},
        ]
    )
    [turn] = turns(event("session.ended"), traces=[trace])
    invocation = turn.invocation
    assert (invocation.invocation_id, invocation.derived) == ("kp:trace:1", True)
    assert invocation.tool_uses == [FunctionCall(name="find", args={"a": 1}), FunctionCall(name="retry", args=None)]
    assert (invocation.user_content, invocation.final_response) == (
        Content.of("Book two seats"),
        Content.of("Booked", "model"),
    )


def test_a_trace_beside_invocations_derives_none() -> None:
    assert ids(turns(event("invocation.started", "i"), traces=[make_trace()])) == ["i"]


def test_references_may_come_with_any_event_and_the_last_one_stands() -> None:
    [turn] = turns(
        event("invocation.started", "i", reference={"question": "one"}),
        event("invocation.completed", "i", reference={"expected_facts": ["two"]}),
    )
    assert turn.reference == Reference(expected_facts=["two"])


def test_two_recorded_invocations_of_one_id_are_told_apart() -> None:
    recorded = {"type": "invocation.recorded", "invocation": {"invocation_id": "a"}}
    assert ids(turns(recorded, recorded)) == ["a", "a#1"]


def test_an_id_that_looks_like_one_of_ours_is_told_apart_from_ours() -> None:
    recorded = {"type": "invocation.recorded", "invocation": {}}
    assert ids(turns({"type": "invocation.started", "invocation_id": "#1"}, recorded)) == ["#1", "#1#1"]
