"""What OpenInference writes of agents in shapes of their own: smolagents' arguments, names and answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import span
from tests.unit.streams.spans.test_frames import events_of, text_of

ARGS = {"day": "Sunday"}
CALL = {"id": "c1", "type": "function", "function": {"name": "hours", "arguments": ARGS}}
AGENT: dict[str, Any] = {"openinference.span.kind": "AGENT", "input.value": json.dumps({"task": "Open?"})}
MODEL: dict[str, Any] = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "m",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "hours",
}


@pytest.mark.parametrize(
    ("output", "args"),
    [
        ({"role": "assistant", "content": "Wait.", "tool_calls": [CALL]}, ARGS),
        ({"role": "assistant", "content": "Wait.", "tool_calls": [{**CALL, "id": "c2"}]}, {}),
        ({"role": "assistant", "content": "Wait."}, {}),
    ],
)
def test_arguments_that_no_attribute_has_are_in_the_output_of_the_model(output: Any, args: dict[str, Any]) -> None:
    model = {**MODEL, "output.value": json.dumps(output), "output.mime_type": "application/json"}
    [called] = events_of([span(1, 0, "desk.run", AGENT), span(2, 1, "generate", model)], "tool.called")
    assert (called["name"], called["args"]) == ("hours", args)


@pytest.mark.parametrize(
    ("name", "attributes", "expected"),
    [
        ("desk.run", {}, "desk"),
        ("desk.run", {"agent.name": "Front desk"}, "Front desk"),
        ("desk.start", {}, None),
        ("ToolCallingAgent.run", {}, None),
    ],
)
def test_the_name_before_run_is_the_name_of_the_agent(
    name: str, attributes: dict[str, str], expected: str | None
) -> None:
    [completed] = events_of([span(1, 0, name, {**AGENT, **attributes, "output.value": "No."})], "invocation.completed")
    assert completed.get("agent_name") == expected


@pytest.mark.parametrize("answer", ['{"desk": "open", "bags": 0}', '["a", "b"]', "No, closed.", '{"unfinished": '])
def test_an_answer_that_is_json_is_the_text_as_it_is(answer: str) -> None:
    [completed] = events_of([span(1, 0, "desk.run", {**AGENT, "output.value": answer})], "invocation.completed")
    assert text_of(completed["final_response"]) == answer


def test_a_json_output_without_an_answer_is_no_answer() -> None:
    state = {**AGENT, "output.value": '{"step": 3}', "output.mime_type": "application/json"}
    [completed] = events_of([span(1, 0, "desk.run", state)], "invocation.completed")
    assert "final_response" not in completed
    assert completed["missing"]
