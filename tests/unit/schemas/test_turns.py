"""Tests that events become invocations, in the order of the invocations' starts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.support.paths import ROOT
from tests.support.scoring import NOW, make_session, make_trace

from traceweir.schemas.dimensions import Dimensions
from traceweir.schemas.event_steps import QUESTION_OF_RUN_BEFORE
from traceweir.schemas.events import EVENT, TYPES, Event
from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    FunctionResponse,
    IntermediateData,
    Invocation,
    InvocationEvents,
    RetrievedChunk,
    TokenUsage,
)
from traceweir.schemas.reasoning_parts import invocation_with_reasoning
from traceweir.schemas.reference import Reference
from traceweir.schemas.session import Session
from traceweir.schemas.turns import Turn, trace_dimensions, turns_of, withdrawn_turns


def turns(*events: dict[str, Any], traces: Any = ()) -> list[Turn]:
    """Returns the turns of these events, which are one second apart."""
    return turns_of(session(*events, traces=traces))


def session(*events: dict[str, Any], traces: Any = ()) -> Session:
    read = [
        EVENT.validate_python({"session_id": "s", "occurred_at": NOW + timedelta(seconds=number), **event})
        for number, event in enumerate(events)
    ]
    return make_session("s", events=read, traces=list(traces))


def event(kind: str, invocation_id: str = "", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "invocation_id": invocation_id, **fields}


def content(text: str) -> dict[str, Any]:
    return {"parts": [{"text": text}]}


def ids(found: list[Turn]) -> list[str]:
    return [turn.invocation.invocation_id for turn in found]


def test_the_events_of_an_invocation_become_one_turn() -> None:
    [turn] = turns(
        event("invocation.started", "i", user_content=content("Book a seat"), app_name="app", reference_id="r"),
        event("model.called", "i", model="m", input_tokens=5, output_tokens=2),
        event("tool.called", "i", name="book", args={"seats": 1}, call_id="c"),
        event("tool.returned", "i", name="book", call_id="c", response={"ok": True}),
        event("tool.returned", "i", name="book", error="no seat"),
        event("retrieval.returned", "i", chunks=[{"doc_uri": "d1"}]),
        event("retrieval.returned", "i", chunks=[{"doc_uri": "d2", "content": "x"}]),
        event("response.intermediate", "i", author="agent", content=content("One moment")),
        event("model.called", "i", model="m", input_tokens=7),
        event("invocation.completed", "i", final_response=content("Booked")),
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


def test_an_event_that_another_one_replaces_does_not_count() -> None:
    missing = ["the result of the call of tool 'book' is not in the spans: ..."]
    [turn] = turns(
        event("invocation.started", "i", event_id="1"),
        event("tool.called", "i", event_id="2", name="book", call_id="c"),
        event("tool.returned", "i", event_id="3~2", name="book", call_id="c", response=1, replaces=["3"]),
        event("tool.returned", "i", event_id="3", name="book", call_id="c", missing=missing),
        event("tool.called", "other", event_id="4", name="book"),
        event("tool.called", "other", event_id="4~withdrawn", name="book", replaces=["4", "4~withdrawn"]),
    )
    assert turn.invocation.unread is None
    assert turn.invocation.intermediate_data == IntermediateData(
        tool_uses=[FunctionCall(id="c", name="book")],
        tool_responses=[FunctionResponse(id="c", name="book", response=1)],
    )


def test_a_session_starts_with_an_event_that_counts() -> None:
    events = [
        EVENT.validate_python({"session_id": "s", **event("invocation.started", "i", **fields)})
        for fields in (
            {"event_id": "1", "occurred_at": NOW - timedelta(hours=1)},
            {"event_id": "1~2", "occurred_at": NOW, "replaces": ["1"]},
        )
    ]
    assert make_session("s", events=events, traces=[]).started_at == NOW


def test_data_that_no_event_contains_is_absent() -> None:
    [turn] = turns(event("invocation.started", "i"))
    invocation = turn.invocation
    assert (invocation.final_response, invocation.token_usage, invocation.retrieved_context) == (None, None, None)
    assert invocation.tool_uses == []


def test_invocations_are_in_the_order_of_their_starts() -> None:
    found = turns(
        event("invocation.started", "b"),
        event("invocation.started", "a"),
        event("invocation.completed", "b"),
        event("invocation.completed", "a"),
    )
    assert ids(found) == ["b", "a"]


def test_an_event_without_an_id_belongs_to_the_invocation_that_started_last() -> None:
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


def test_a_tool_call_before_the_start_of_its_invocation_belongs_to_it() -> None:
    found = turns(event("tool.called", "a", name="x"), event("invocation.started", "a", user_content=content("hi")))
    assert ids(found) == ["a"]
    assert found[0].invocation.user_content is not None


def test_a_recorded_invocation_becomes_a_turn_unchanged() -> None:
    [turn] = turns(
        event(
            "invocation.recorded",
            invocation={"invocationId": "e1", "finalResponse": content("hi")},
            reference={"question": "q"},
        )
    )
    assert (turn.invocation.invocation_id, turn.reference) == ("e1", Reference(question="q"))


def test_the_id_of_the_event_takes_precedence_over_the_id_of_the_recorded_invocation() -> None:
    found = turns(
        event("invocation.recorded", "outer", invocation={"invocation_id": "inner"}),
        event("invocation.recorded", invocation={}),
    )
    assert ids(found) == ["outer", "#1"]


def test_the_end_event_of_a_session_is_not_an_invocation() -> None:
    assert turns(event("session.ended")) == []


def test_a_trace_without_invocations_results_in_a_derived_invocation() -> None:
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


def test_a_trace_that_names_its_invocation_results_in_no_derived_invocation_while_the_events_are_missing() -> None:
    assert turns(traces=[make_trace(metadata={"invocation_id": "i"})]) == []


def test_a_trace_beside_invocations_results_in_no_derived_invocation() -> None:
    assert ids(turns(event("invocation.started", "i"), traces=[make_trace()])) == ["i"]


def test_any_event_can_have_a_reference_and_the_last_reference_applies() -> None:
    [turn] = turns(
        event("invocation.started", "i", reference={"question": "one"}),
        event("invocation.completed", "i", reference={"expected_facts": ["two"]}),
    )
    assert turn.reference == Reference(expected_facts=["two"])


def test_two_recorded_invocations_with_the_same_id_get_different_ids() -> None:
    recorded = {"type": "invocation.recorded", "invocation": {"invocation_id": "a"}}
    assert ids(turns(recorded, recorded)) == ["a", "a#1"]


def test_a_given_id_in_the_form_of_a_generated_id_stays_unique() -> None:
    recorded = {"type": "invocation.recorded", "invocation": {}}
    assert ids(turns({"type": "invocation.started", "invocation_id": "#1"}, recorded)) == ["#1", "#1#1"]


def test_a_turn_has_the_dimensions_of_its_own_events() -> None:
    first, second = turns(
        event("invocation.started", "i", agent_name="travel", environment="test", user_id="u"),
        event("invocation.started", "j", agent_name="billing"),
        event("model.called", "i", model="large"),
        event("session.ended", agent_name="other"),
    )
    assert first.dimensions == Dimensions(agent_name="travel", environment="test", model="large", user_id="u")
    assert second.dimensions == Dimensions(agent_name="billing")


def test_a_row_has_the_dimensions_of_its_trace_and_its_answer_unless_its_event_has_others() -> None:
    trace = {"info": {"trace_metadata": {"mlflow.trace.user": "ada"}, "tags": {"team": "a"}}, "data": {"spans": []}}
    row = {"request": "Hi", "response": {"choices": [], "model": "large"}, "trace": trace}
    (turn,) = turns(event("invocation.recorded", "i", row=row, agent_name="travel", labels={"team": "b"}))
    assert turn.dimensions == Dimensions(agent_name="travel", model="large", user_id="ada", labels={"team": "b"})


def test_a_turn_that_is_derived_from_a_trace_has_the_agent_of_the_trace() -> None:
    traces = [make_trace(metadata={"agent_id": name}) for name in ("travel", "a" * 257)]
    assert [turn.dimensions.agent_name for turn in turns(traces=traces)] == ["travel", None]


def test_a_trace_has_the_dimensions_of_the_invocation_that_it_names() -> None:
    found = turns(
        event("invocation.started", "i", agent_name="travel", environment="test"),
        event("invocation.started", "j", agent_name="billing", environment="test"),
    )
    assert trace_dimensions(make_trace(metadata={"invocation_id": "i"}), found) == found[0].dimensions
    assert trace_dimensions(make_trace(), found) == Dimensions(agent_name="billing", environment="test")


def test_an_invocation_of_which_no_event_counts_is_withdrawn_and_keeps_its_dimensions() -> None:
    found = session(
        event("invocation.started", "gone", event_id="a", agent_name="planner"),
        event("invocation.completed", "gone", event_id="b"),
        event("invocation.started", "gone", event_id="c", replaces=["a", "b", "c"]),
        event("invocation.started", "kept", event_id="d"),
        event("invocation.completed", "kept", event_id="e"),
        event("invocation.completed", "kept", event_id="f", replaces=["e"]),
    )

    (gone,) = withdrawn_turns(found)
    assert (gone.invocation.invocation_id, gone.dimensions.agent_name) == ("gone", "planner")
    assert [each.invocation.invocation_id for each in turns_of(found)] == ["kept"]


def test_what_is_withdrawn_in_another_segment_is_unknown_here() -> None:
    assert withdrawn_turns(session(event("invocation.started", "gone", event_id="c", replaces=["a", "c"]))) == []


def test_a_withdrawn_trace_of_a_session_without_events_withdraws_its_invocation() -> None:
    withdrawn = make_trace(id="kp:trace:2", metadata={"withdrawn": True})
    found = session(traces=[make_trace(), withdrawn])

    assert [each.invocation.invocation_id for each in withdrawn_turns(found)] == ["kp:trace:2"]


def test_a_withdrawn_trace_stands_for_no_invocation() -> None:
    withdrawn = make_trace(id="kp:trace:2", metadata={"withdrawn": True})
    found = session(traces=[make_trace(), withdrawn])

    assert [each.id for each in found.current_traces] == ["kp:trace:1"]
    assert [each.invocation.invocation_id for each in turns_of(found)] == ["kp:trace:1"]


GOLDEN = ROOT / "tests" / "golden" / "1.0"


@pytest.mark.parametrize("kind", TYPES)
def test_an_event_is_a_part_of_its_invocation_or_only_tells_of_its_session(kind: str) -> None:
    found = EVENT.validate_json((GOLDEN / f"InvocationEvent.{kind}.json").read_bytes())
    told = turns_of(make_session("s", events=[found]))
    if not found.of_invocation:
        assert told == []
        return
    shared = found.model_dump(include=set(Event.model_fields))
    empty = EVENT.validate_python({**shared, "type": "invocation.started"})
    assert told != turns_of(make_session("s", events=[empty])), (
        f"{kind} changes nothing in its invocation: read it in turns.py, or give it `of_invocation = False`"
    )


def test_an_event_that_only_tells_of_its_session_is_no_invocation() -> None:
    found = session(event("session.ended", "i"))
    assert turns_of(found) == withdrawn_turns(found) == []
    assert len(turns(event("session.ended", "i"), traces=[make_trace()])) == 1


def called_and_answered(name: str, **started: Any) -> list[dict[str, Any]]:
    return [
        event("invocation.started", name, **started),
        event("tool.called", name, name="find", call_id="c"),
        event("tool.returned", name, name="find", call_id="c", response=name),
        event("invocation.completed", name, final_response=content(name)),
    ]


@pytest.mark.parametrize("missing", [None, ["the question is not recorded"]])
def test_turns_whose_source_leaves_questions_out_stay_apart(missing: list[str] | None) -> None:
    first = called_and_answered("a", missing=missing)
    second = called_and_answered("b", missing=missing)
    del second[1]

    assert ids(turns(*first, *second)) == ["a", "b"]


def test_a_turn_whose_source_says_that_it_goes_on_is_a_part_of_the_turn_before() -> None:
    second = called_and_answered("b", missing=[f"{QUESTION_OF_RUN_BEFORE}: a person has answered"])
    del second[1]
    [turn] = turns(*called_and_answered("a", user_content=content("Why?")), *second)

    assert turn.invocation.final_response == Content.model_validate(content("b"))
    assert turn.invocation.unread is None


@pytest.mark.parametrize("call_id", [None, "c"])
def test_a_question_that_is_asked_again_after_an_error_is_a_turn_of_its_own(call_id: str | None) -> None:
    def turn(name: str, **end: Any) -> list[dict[str, Any]]:
        return [
            event("invocation.started", name, user_content=content("book")),
            event("tool.called", name, name="find", args={"x": 1}, call_id=call_id and call_id + name),
            event("invocation.completed", name, **end),
        ]

    first, second = turns(*turn("a", error="boom"), *turn("b", final_response=content("done")))

    assert (first.invocation.error, second.invocation.error) == ("boom", None)
    assert [len(each.invocation.tool_uses) for each in (first, second)] == [1, 1]


def test_parts_of_a_tools_result_that_are_no_text_are_named() -> None:
    drawn = [{"type": "text", "text": "hall 7"}, {"type": "image", "data": "QUJDREVG", "mimeType": "image/png"}]
    [turn] = turns(
        event("invocation.started", "i", user_content=content("Draw it.")),
        event("tool.called", "i", name="draw", args={}, call_id="c"),
        event("tool.returned", "i", name="draw", call_id="c", response=drawn),
    )
    assert [each.response for each in turn.invocation.tool_responses] == ["hall 7"]
    assert turn.invocation.unread == ["not all of the result of tool 'draw' is text: 1 part of type 'image'"]


@pytest.mark.parametrize("is_recorded", [False, True])
def test_reasoning_in_the_texts_of_an_agent_is_left_out_and_kept_for_metrics_that_count_it(is_recorded: bool) -> None:
    question = content("<think> is a tag of what?")
    answer = content("<think>Norway...</think>Oslo.")
    step = {"parts": [{"text": "<think>First</think>Let me look."}]}
    recorded = {
        "user_content": question,
        "final_response": answer,
        "intermediate_data": {"invocation_events": [{"author": "geo", "content": step}]},
    }
    events = (
        [event("invocation.recorded", "i", invocation=recorded)]
        if is_recorded
        else [
            event("invocation.started", "i", user_content=question),
            event("response.intermediate", "i", author="geo", content=step),
            event("invocation.completed", "i", final_response=answer),
        ]
    )

    [turn] = turns(*events)

    def texts(found: Invocation) -> list[Any]:
        data = found.intermediate_data
        said = (
            [each.content for each in data.invocation_events]
            if isinstance(data, InvocationEvents)
            else [Content(parts=parts) for _, parts in (data.intermediate_responses if data else ())]
        )
        return [each and each.text for each in (found.user_content, *said, found.final_response)]

    assert texts(turn.invocation) == ["<think> is a tag of what?", "Let me look.", "Oslo."]
    with_all = invocation_with_reasoning(turn.invocation)
    assert texts(with_all) == [each["parts"][0]["text"] for each in (question, step, answer)]
