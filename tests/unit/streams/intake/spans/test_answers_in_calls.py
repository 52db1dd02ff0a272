"""A model can have to write its answer as the arguments of a call, or in a schema."""

from __future__ import annotations

import json

from tests.support.spans import span
from tests.unit.streams.intake.spans.test_shapes import AGENT, ASKED, answer_of, call, chat, events_of, forced, text


def test_the_call_whose_arguments_are_the_answer_of_the_agent_is_no_call_of_a_tool() -> None:
    verdict = {"open": False, "why": "It is Sunday."}
    output = {"messages": [], "structured_response": {**verdict, "sure": True}}
    agent = {
        "openinference.span.kind": "AGENT",
        "input.value": "Open on Sunday?",
        "output.value": json.dumps(output),
        "output.mime_type": "application/json",
    }
    asked = {"role": "assistant", "parts": [call("Verdict", verdict, "c1")]}
    spans = [span(1, 0, "desk", agent), chat(2, [ASKED], [asked])]
    assert json.loads(answer_of(spans)) == {**verdict, "sure": True}
    assert events_of(spans, "tool.called") == []

    ran = span(3, 1, "Verdict", {"openinference.span.kind": "TOOL", "tool.name": "Verdict", "output.value": "noted"})
    assert [each["name"] for each in events_of([*spans, ran], "tool.called")] == ["Verdict"]


def test_the_answer_that_a_step_had_to_write_as_a_call_is_no_call_of_a_tool() -> None:
    route = forced(ran=False)[1]
    spans = [
        span(1, 0, "invoke_agent desk", AGENT),
        span(2, 1, "m", route.attributes),  # type: ignore[arg-type]
        chat(3, [ASKED], [text("No.", "stop")]),
    ]
    assert answer_of(spans) == "No."
    assert events_of(spans, "tool.called") == []


def test_the_only_field_of_a_chat_is_the_text() -> None:
    asked = {"role": "user", "parts": [{"type": "text", "content": '{"chat_message":"Open on Sunday?"}'}]}
    spans = [span(1, 0, "turn", {}), chat(2, [asked], [text('{"chat_message": "No."}', "stop")])]
    [started] = events_of(spans, "invocation.started")
    assert started["user_content"]["parts"] == [{"text": "Open on Sunday?"}]
    assert answer_of(spans) == "No."
    assert events_of(spans, "response.intermediate") == []


def test_a_step_that_returns_nothing_gives_no_answer() -> None:
    desk = span(1, 0, "desk", {"openinference.span.kind": "AGENT"})
    step = span(2, 1, "step", {"openinference.span.kind": "CHAIN"})
    model = chat(3, [ASKED], [text("No.", "stop")])
    model.parent_id = step.span_id
    last = span(4, 1, "after_agent", {"openinference.span.kind": "AGENT", "output.value": "null"})
    assert answer_of([desk, step, model, last]) == "No."


def test_the_arguments_of_a_call_that_a_tool_ran_are_no_answer() -> None:
    [completed] = events_of(forced(ran=True), "invocation.completed")
    assert "final_response" not in completed
