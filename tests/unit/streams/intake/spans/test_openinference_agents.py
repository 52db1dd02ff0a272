"""What OpenInference writes of agents in shapes of their own: smolagents' arguments, names and answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import event, span
from tests.unit.streams.intake.spans.test_frames import events_of, text_of

from traceweir.streams.intake.spans.span import Span

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


SMOLAGENTS = "openinference.instrumentation.smolagents"
HIDDEN = {"input.value": "__REDACTED__", "output.value": "__REDACTED__"}


def managed(*, raises: bool = False, hidden: bool = False, asked: bool = True) -> list[Span]:
    """Returns the spans of a desk that lets the searcher work, in the order in which they ended.

    The instrumentation never ends the span of a run that raises. `asked`: whether the model asks for the searcher in a
    call, and not in code.
    """
    step, model = {"openinference.span.kind": "CHAIN", "input.value": "{}"}, {"openinference.span.kind": "LLM"}
    call = {**CALL, "function": {"name": "searcher", "arguments": {"task": "Sunday?"}}}
    wrote = {"role": "assistant", "content": "I ask.", "tool_calls": [call] if asked else []}
    read = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "New task:\nOpen?"}
    first = {**model, **read, "output.value": json.dumps(wrote), "output.mime_type": "application/json"}
    task = {**AGENT, "input.value": json.dumps({"task": "You are the searcher. Sunday?"}), "output.value": "open"}
    hours = {"openinference.span.kind": "TOOL", "tool.name": "hours", "input.value": json.dumps({"kwargs": ARGS})}
    found = [
        span(3, 2, "OpenAIServerModel.generate", first),
        span(6, 5, "SimpleTool", {**hours, "output.value": "Sunday: open"}),
        span(5, 4, "Step 1", step, end_ns=7 * 10**9),
        span(4, 2, "searcher.run", task, end_ns=8 * 10**9),
        span(2, 1, "Step 1", {**step, "output.value": "The searcher says: open"}, end_ns=9 * 10**9),
        span(10, 1, "Step 2", step, *([event("exception")] if raises else ()), status="ERROR" if raises else "OK"),
    ]
    found += [] if raises else [span(1, 0, "desk.run", {**AGENT, "output.value": "Yes."})]
    for each in found:
        each.scope = SMOLAGENTS
        if hidden:
            each.attributes = {key: HIDDEN.get(key, value) for key, value in each.attributes.items()}
            each.attributes = {key: value for key, value in each.attributes.items() if not key.startswith("llm.")}
    return found


@pytest.mark.parametrize("has_model", [True, False])
def test_a_run_whose_agent_span_is_lost_is_not_told_as_the_turn_of_its_managed_agent(has_model: bool) -> None:
    spans = managed(raises=True)[0 if has_model else 1 :]
    [started], [completed] = events_of(spans, "invocation.started"), events_of(spans, "invocation.completed")
    if has_model:
        assert text_of(started["user_content"]) == "Open?"
    else:
        assert [note.partition(":")[0] for note in started["missing"]] == ["the question is not in the spans"]
    assert "final_response" not in completed
    assert "agent_name" not in completed
    [note] = [note for note in completed["missing"] if "the name of the agent" in note]
    assert "as that of smolagents when a run raises" in note
    assert not [note for note in completed["missing"] if "the answer" in note]


@pytest.mark.parametrize("raises", [True, False])
@pytest.mark.parametrize(
    ("spans", "reason"), [({"hidden": True}, "set OPENINFERENCE_HIDE"), ({"asked": False}, "a ToolCallingAgent manage")]
)
def test_the_call_of_a_managed_agent_that_nothing_tells_is_said_to_be_missing(
    spans: dict[str, bool], reason: str, raises: bool
) -> None:
    [completed] = events_of(managed(raises=raises, **spans), "invocation.completed")
    [note] = [note for note in completed["missing"] if "managed" in note]
    assert note.startswith("the calls of the managed agents searcher are not in the spans: ")
    assert reason in note


def test_the_call_of_a_managed_agent_that_the_model_tells_is_not_missing() -> None:
    spans = managed()
    assert [called["name"] for called in events_of(spans, "tool.called")] == ["searcher", "hours"]
    [completed] = events_of(spans, "invocation.completed")
    assert not [note for note in completed["missing"] if "managed" in note]
