"""The span of an agent without those of its model calls: what its messages tell is read, and what is broken is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

QUESTION = {"role": "user", "parts": [{"type": "text", "content": "How many chairs?"}]}
RESULT = {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "name": "count", "result": "48"}]}
ANSWER = {"role": "assistant", "parts": [{"type": "text", "content": "48 chairs."}]}
BROKEN = '{"hall": 3'


def call(arguments: Any) -> dict[str, Any]:
    part = {"type": "tool_call", "id": "c1", "name": "count", "arguments": arguments}
    return {"role": "assistant", "parts": [part]}


def run(value: Any) -> Span:
    return span(1, 0, "agent run", {"agent_name": "guide", "pydantic_ai.all_messages": value}, scope="pydantic-ai")


def events(found: Span) -> dict[str, dict[str, Any]]:
    return {event["type"]: event for event in read_trace([found]).events}


@pytest.mark.parametrize("name", ["pydantic_ai.all_messages", "all_messages_events"])
@pytest.mark.parametrize("write", [json.dumps, repr])
def test_all_messages_of_a_run_tell_its_question_its_calls_and_its_answer(name: str, write: Any) -> None:
    found = events(
        span(1, 0, "agent run", {"agent_name": "guide", name: write([QUESTION, call({"hall": 3}), RESULT, ANSWER])})
    )
    assert found["invocation.started"]["user_content"]["parts"] == [{"text": "How many chairs?"}]
    assert found["tool.called"]["args"] == {"hall": 3}
    assert found["tool.returned"]["response"] == "48"
    assert found["invocation.completed"]["final_response"]["parts"] == [{"text": "48 chairs."}]
    assert not any("tool" in sentence for sentence in found["invocation.completed"]["missing"])


def test_arguments_that_are_no_json_are_named_and_the_rest_is_read() -> None:
    found = events(run(json.dumps([QUESTION, call(BROKEN), RESULT, ANSWER])))
    assert "args" not in found["tool.called"]
    assert found["tool.called"]["missing"] == [
        (
            "the arguments of the call of tool 'count' are not in the spans: what stands there is no JSON, as a model can "
            f"write it: {BROKEN!r}"
        )
    ]
    assert found["tool.returned"]["response"] == "48"
    assert found["invocation.completed"]["final_response"]["parts"] == [{"text": "48 chairs."}]


@pytest.mark.parametrize(
    "value",
    [
        json.dumps([QUESTION, call({"hall": 3}), ANSWER]).replace('{"hall": 3}', BROKEN),
        repr([QUESTION, {1, 2}, ANSWER]),
    ],
    ids=["JSON", "Python"],
)
def test_messages_that_are_no_json_are_no_question(value: str) -> None:
    found = events(run(value))
    reason = "the value of pydantic_ai.all_messages is no JSON; write it with a serializer of JSON, such as json.dumps"
    assert "user_content" not in found["invocation.started"]
    assert found["invocation.started"]["missing"] == [f"the question is not in the spans: {reason}"]
    assert f"the answer is not in the spans: {reason}" in found["invocation.completed"]["missing"]


@pytest.mark.parametrize(
    ("value", "question"), [("How many chairs?", "How many chairs?"), ('[{"role": "user",, }]', "")]
)
def test_a_text_in_place_of_messages_is_a_question_unless_it_is_broken_json(value: str, question: str) -> None:
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": value}
    started = events(span(1, 0, "chat", chat))["invocation.started"]
    assert started.get("user_content", {"parts": [{"text": ""}]})["parts"] == [{"text": question}]


def test_agents_below_a_workflow_tell_its_question_and_its_answer_without_spans_of_models() -> None:
    def agent(number: int, parent: int, asked: list[Any], said: Any) -> Span:
        told = {"gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps([said])}
        return span(number, parent, "agent", {"gen_ai.operation.name": "invoke_agent"} | told)

    other = {"role": "user", "parts": [{"type": "text", "content": "Count."}]}
    read = read_trace(
        [
            span(1, 0, "flow", {"gen_ai.operation.name": "invoke_workflow"}),
            agent(2, 1, [QUESTION], call({"hall": 3})),
            span(3, 1, "count", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "count"}),
            # It works for the tool.
            agent(4, 3, [other], {"role": "assistant", "parts": [{"type": "text", "content": "Counted."}]}),
            agent(5, 1, [QUESTION, call({"hall": 3}), RESULT], ANSWER),
        ]
    )
    found = {event["type"]: event for event in read.events}
    assert found["invocation.started"]["user_content"]["parts"] == [{"text": "How many chairs?"}]
    assert found["invocation.completed"]["final_response"]["parts"] == [{"text": "48 chairs."}]
    assert not any("answer" in sentence for sentence in found["invocation.completed"]["missing"])
