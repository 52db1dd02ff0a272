"""Parts of a question or an answer that are no text are named when only the span of an agent tells the messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span, SpanEvent

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
WHAT = "What is this?"
IMAGE = {"type": "image", "image": "aGk="}
NO_QUESTION = "the question is no text: 1 part of type 'image'"
NOT_ALL = "not all of the question is text: 1 part of type 'image'"


def by_type(*spans: Span) -> dict[str, dict[str, Any]]:
    return {event["type"]: event for event in read_trace(list(spans)).events}


def of_strands(asked: Any, written: Any) -> Span:
    user = SpanEvent("gen_ai.user.message", 1, {"content": json.dumps(asked)})
    chosen = SpanEvent("gen_ai.choice", 2, {"message": json.dumps(written), "finish_reason": "end_turn"})
    found = span(1, 0, "invoke_agent desk", {**AGENT, "gen_ai.system": "strands-agents"})
    found.events.extend([user, chosen])
    return found


def of_mastra(*content: Any) -> Span:
    asked = json.dumps([{"role": "user", "content": list(content)}])
    told = {
        "mastra.span.type": "agent_run",
        "mastra.agent_run.input": asked,
        "mastra.agent_run.output": '{"text": "A."}',
    }
    return span(1, 0, "invoke_agent desk", {**AGENT, **told})


def of_pydantic_ai(*parts: Any) -> Span:
    answer = {"role": "assistant", "parts": [{"type": "text", "content": "A."}]}
    history = json.dumps([{"role": "user", "parts": list(parts)}, answer])
    return span(1, 0, "agent run", {"agent_name": "desk", "pydantic_ai.all_messages": history, "final_result": "A."})


def of_messages(*parts: Any) -> Span:
    asked = json.dumps([{"role": "user", "parts": list(parts)}])
    answer = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "A."}]}])
    return span(1, 0, "desk", {**AGENT, "gen_ai.input.messages": asked, "gen_ai.output.messages": answer})


@pytest.mark.parametrize(
    ("agent", "missing"),
    [
        (of_strands([{"text": WHAT}, {"image": {"format": "png"}}], [{"text": "A."}]), NOT_ALL),
        (of_strands([{"image": {"format": "png"}}], [{"text": "A."}]), NO_QUESTION),
        (of_mastra({"type": "text", "text": WHAT}, IMAGE), NOT_ALL),
        (of_mastra(IMAGE), NO_QUESTION),
        (of_pydantic_ai({"type": "text", "content": WHAT}, IMAGE), NOT_ALL),
        (of_messages({"type": "text", "content": WHAT}, IMAGE), NOT_ALL),
        (of_messages(IMAGE), NO_QUESTION),
    ],
)
def test_parts_of_a_question_on_the_span_of_an_agent_are_named(agent: Span, missing: str) -> None:
    events = by_type(agent)
    assert events["invocation.started"]["missing"] == [missing]
    assert events["invocation.completed"]["final_response"]["parts"] == [{"text": "A."}]


def test_parts_of_an_answer_on_the_span_of_an_agent_are_named() -> None:
    video = {"video": {"format": "mp4", "source": {"bytes": "aGk="}}}
    events = by_type(of_strands([{"text": WHAT}], [{"text": "A."}, video]))
    assert "missing" not in events["invocation.started"]
    assert "not all of the answer is text: 1 part of type 'video'" in events["invocation.completed"]["missing"]


def test_an_image_of_a_former_question_is_no_part_of_the_question() -> None:
    former = {"role": "user", "content": [IMAGE, {"type": "text", "text": WHAT}]}
    asked = [former, {"role": "assistant", "content": "A lamp."}, {"role": "user", "content": "Why?"}]
    told = {"mastra.agent_run.input": json.dumps(asked), "mastra.agent_run.output": '{"text": "A."}'}
    started = by_type(span(1, 0, "invoke_agent desk", {**AGENT, **told}))["invocation.started"]
    assert (started["user_content"]["parts"], "missing" in started) == ([{"text": "Why?"}], False)


@pytest.mark.parametrize(
    "text",
    [
        "<PIL.Image.Image image mode=RGB size=8x8 at 0x7F3A>",
        "<desk.Lamp object at 0x12>",
        "content='A lamp.' additional_kwargs={} response_metadata={} id='run-1'",
        "{'messages': [AIMessage(content='A lamp.')]}",
    ],
)
def test_an_answer_that_is_pythons_text_of_an_object_is_none(text: str) -> None:
    told = {"openinference.span.kind": "AGENT", "agent.name": "desk", "input.value": '{"task": "Draw."}'}
    completed = by_type(span(1, 0, "CodeAgent.run", {**told, "output.value": text}))["invocation.completed"]
    assert "final_response" not in completed
    assert "the answer is no text: 1 part of type 'object printed by Python'" in completed["missing"]


@pytest.mark.parametrize(
    "text",
    [
        "<Response [404]>",
        "content='Hi' response_metadata={'a': 1} is what it prints.",
        "{'output': 'hello'}",
        "{'output': 42}",
        "{'role': 'user', 'content': 'Hi'}",
    ],
)
def test_an_object_that_can_be_the_answer_itself_stays_as_it_is(text: str) -> None:
    told = {"openinference.span.kind": "AGENT", "agent.name": "desk", "input.value": '{"task": "What is printed?"}'}
    completed = by_type(span(1, 0, "CodeAgent.run", {**told, "output.value": text}))["invocation.completed"]
    assert completed["final_response"]["parts"] == [{"text": text}]


@pytest.mark.parametrize(
    "text",
    [
        "{'role': 'user' gives a syntax error, why?",
        "{'role': 'user'} works, but this fails: {'role': 1}",
    ],
)
def test_a_question_about_objects_of_python_is_the_question(text: str) -> None:
    told = {"openinference.span.kind": "AGENT", "agent.name": "desk", "output.value": "A brace is missing."}
    started = by_type(span(1, 0, "Agent.run", {**told, "input.value": text}))["invocation.started"]
    assert started["user_content"]["parts"] == [{"text": text}]


def test_a_question_that_is_pythons_text_of_an_object_is_none() -> None:
    told = {"openinference.span.kind": "AGENT", "agent.name": "desk", "output.value": "A lamp."}
    asked = "content='What is it?' additional_kwargs={} response_metadata={}"
    started = by_type(span(1, 0, "Agent.run", {**told, "input.value": asked}))["invocation.started"]
    assert "user_content" not in started
    assert started["missing"] == ["the question is no text: 1 part of type 'object printed by Python'"]


def test_a_request_and_an_answer_in_pythons_notation_are_read_if_they_have_a_form_in_json() -> None:
    told = {"openinference.span.kind": "AGENT", "agent.name": "desk"}
    asked = "{'messages': [{'role': 'user', 'content': 'What is it?'}]}"
    said = "{'role': 'assistant', 'content': 'A lamp.'}"
    found = by_type(span(1, 0, "Agent.run", {**told, "input.value": asked, "output.value": said}))
    assert found["invocation.started"]["user_content"]["parts"] == [{"text": "What is it?"}]
    assert found["invocation.completed"]["final_response"]["parts"] == [{"text": "A lamp."}]
