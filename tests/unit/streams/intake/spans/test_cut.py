"""A text that a limit of the SDK has cut is said to be missing, and nothing else takes its place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from tests.support.otlp_recordings import Tally, compare, load, names
from tests.support.spans import event, span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Attributes, Span

AGENT = {"openinference.span.kind": "AGENT"}
MODEL = {"openinference.span.kind": "LLM", "llm.model_name": "m"}
LONG = "word " * 40


def cut(spans: Sequence[Span], limit: int) -> list[Span]:
    """Returns the spans as an SDK with this limit exports them."""

    def kept(attributes: Attributes) -> dict[str, Any]:
        return {key: value[:limit] if isinstance(value, str) else value for key, value in attributes.items()}

    return [
        replace(
            each,
            attributes=kept(each.attributes),
            events=[told._replace(attributes=kept(told.attributes)) for told in each.events],
        )
        for each in spans
    ]


def events_of(*spans: Span, kind: str) -> list[dict[str, Any]]:
    return [each for each in read_trace(spans).events if each["type"] == kind]


@cache
def tally_of(name: str) -> Tally:
    """Returns what is read of a recording whose texts are not cut."""
    tally, _ = compare(*load(name))
    return tally


@pytest.mark.slow
@pytest.mark.parametrize("limit", [128, 1_000])
@pytest.mark.parametrize("name", names())
def test_no_value_of_a_recording_is_guessed_when_its_texts_are_cut(name: str, limit: int) -> None:
    truth, spans = load(name)
    whole = tally_of(name)
    tally, misses = compare(truth, cut(spans, limit))
    for field in ("questions", "answers", "args"):
        wrong = [total - right - said for right, said, total in (whole[field], tally[field])]
        assert wrong[1] <= wrong[0], [miss for miss in misses if miss.startswith(f"{field}:")]


def test_an_older_question_does_not_take_the_place_of_a_cut_one() -> None:
    history = [
        {"role": role, "content": text} for role, text in (("user", "Open?"), ("assistant", "Yes."), ("user", LONG))
    ]
    told = {
        f"llm.input_messages.{n}.message.{key}": value for n, each in enumerate(history) for key, value in each.items()
    }
    spans = [
        span(1, 0, "agent", {**AGENT, "input.value": json.dumps({"messages": history})}),
        span(2, 1, "m", MODEL | told),
    ]
    (started,) = events_of(*cut(spans, 100), kind="invocation.started")
    assert "user_content" not in started
    assert "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT" in started["missing"][0]


def test_an_earlier_text_does_not_take_the_place_of_a_cut_answer() -> None:
    def model(number: int, text: str) -> Span:
        told = {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": text}
        return span(number, 1, "m", MODEL | told)

    agent = span(1, 0, "agent", {**AGENT, "input.value": json.dumps({"a": LONG})})
    found = read_trace(cut([agent, model(2, "I look."), model(3, LONG)], 100)).events[-2]
    assert (found["type"], "final_response" in found) == ("invocation.completed", False)
    assert found["missing"][0].startswith("the answer is not in the spans: a value was cut")
    assert any(sentence.startswith("the tool calls of a model's answer, ") for sentence in found["missing"])


def test_cut_arguments_are_not_taken_for_none() -> None:
    prefix = "llm.output_messages.0.message"
    told = {f"{prefix}.role": "assistant", f"{prefix}.tool_calls.0.tool_call.function.name": "look"}
    told[f"{prefix}.tool_calls.0.tool_call.function.arguments"] = json.dumps({"note": LONG})
    (called,) = events_of(*cut([span(1, 0, "agent", AGENT), span(2, 1, "m", MODEL | told)], 100), kind="tool.called")
    assert "args" not in called
    assert "a value was cut" in called["missing"][0]


def test_a_cut_result_is_said_to_be_missing() -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.arguments": "{}"}
    whole = event("gen_ai.choice", message=json.dumps([{"text": LONG}]))
    agent = span(1, 0, "invoke_agent desk", {"gen_ai.operation.name": "invoke_agent"})
    (returned,) = events_of(*cut([agent, span(2, 1, "look", tool, whole)], 100), kind="tool.returned")
    assert "response" not in returned
    assert returned["missing"][0].startswith(
        "the result of the call of tool 'look' is not in the spans: a value was cut"
    )


def test_an_answer_that_is_the_beginning_of_json_is_no_cut_text() -> None:
    """The model stopped at its own limit; longer texts show that the SDK has no limit, or a higher one."""
    answer = '{"note": "' + "x" * 110
    agent = {**AGENT, "input.value": LONG, "output.value": answer}
    (completed,) = events_of(span(1, 0, "agent", agent), kind="invocation.completed")
    assert completed["final_response"]["parts"] == [{"text": answer}]
