"""An answer before whose end the model stopped is the answer, and the event says so, in whatever words its API has."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.spans import event, span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

ASKED = [{"role": "user", "content": "What is the time?"}]
SAID = "It is"
ANSWER = {"role": "assistant", "content": SAID}
OPENINFERENCE = {"openinference.span.kind": "LLM", "llm.model_name": "m"}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": json.dumps(ASKED)}


def standard(finish: str = "stop", **told: Any) -> Span:
    written = [{"role": "assistant", "parts": [{"type": "text", "content": SAID}], "finish_reason": finish}]
    more = {name.replace("__", "."): value for name, value in told.items()}
    return span(2, 0, "chat", CHAT | {"gen_ai.output.messages": json.dumps(written)} | more)


def body(value: Any, **attributes: Any) -> Span:
    told = {"input.value": json.dumps({"messages": ASKED}), "output.value": json.dumps(value)}
    return span(2, 0, "model", OPENINFERENCE | told | attributes)


def without_finish(**attributes: Any) -> Span:
    return body(ANSWER, **{name.replace("__", "."): value for name, value in attributes.items()})


PLAIN = {"gen_ai.output.messages": json.dumps([ANSWER])}
CUT: dict[str, tuple[Span, str]] = {
    "the standard": (standard("length"), "length"),
    "its attribute": (
        span(2, 0, "chat", CHAT | PLAIN | {"gen_ai.response.finish_reasons": ["max_tokens"]}),
        "max_tokens",
    ),
    "its attribute as JSON": (
        span(2, 0, "chat", CHAT | PLAIN | {"gen_ai.response.finish_reasons": '["length"]'}),
        "length",
    ),
    "Semantic Kernel": (
        span(2, 0, "chat", CHAT | PLAIN | {"gen_ai.response.finish_reason": "FinishReason.LENGTH"}),
        "FinishReason.LENGTH",
    ),
    "an event of the standard": (
        span(
            2,
            0,
            "chat",
            CHAT,
            event("gen_ai.choice", {"index": 0, "finish_reason": "max_tokens", "message": ANSWER}),
        ),
        "max_tokens",
    ),
    "OpenInference": (without_finish(llm__finish_reason="length"), "length"),
    "traceloop": (
        span(
            2,
            0,
            "openai.chat",
            {
                "llm.request.type": "chat",
                "gen_ai.prompt.0.role": "user",
                "gen_ai.prompt.0.content": "What is the time?",
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.content": SAID,
                "gen_ai.completion.0.finish_reason": "length",
            },
        ),
        "length",
    ),
    "the AI SDK": (
        span(
            2,
            0,
            "ai.generateText.doGenerate",
            {
                "ai.operationId": "ai.generateText.doGenerate",
                "ai.prompt.messages": json.dumps(ASKED),
                "ai.response.text": SAID,
                "ai.response.finishReason": "length",
            },
        ),
        "length",
    ),
    "chat completions": (body({"choices": [{"message": ANSWER, "finish_reason": "length"}]}), "length"),
    "Anthropic": (
        body({"role": "assistant", "content": [{"type": "text", "text": SAID}], "stop_reason": "max_tokens"}),
        "max_tokens",
    ),
    "Gemini": (
        body({"candidates": [{"content": {"role": "model", "parts": [{"text": SAID}]}, "finishReason": "MAX_TOKENS"}]}),
        "MAX_TOKENS",
    ),
    "Responses": (
        body(
            {
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
                "output": [
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": SAID}]}
                ],
            }
        ),
        "max_output_tokens",
    ),
    "Responses beside the message": (
        body(
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": SAID}]}]},
            **{"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": SAID},
        ),
        "max_output_tokens",
    ),
    "LangChain": (
        body({"generations": [[{"text": SAID, "generation_info": {"finish_reason": "length"}, "message": {
            "lc": 1, "id": ["AIMessage"], "kwargs": {"type": "ai", "content": SAID}}}]]}),
        "length",
    ),
    "a message of LangChain": (
        body({**ANSWER, "response_metadata": {"stopReason": "max_tokens"}}),
        "max_tokens",
    ),
    "Haystack": (body({"replies": [{**ANSWER, "meta": {"finish_reason": "length"}}], **ANSWER,
                       "meta": {"finish_reason": "length"}}), "length"),
    "a filter of content": (standard("content_filter"), "content_filter"),
}  # fmt: skip


def completed_in(*spans: Span) -> dict[str, Any]:
    (found,) = [each for each in read_trace(spans).events if each["type"] == "invocation.completed"]
    return found


@pytest.mark.parametrize(("recorded", "reason"), CUT.values(), ids=CUT)
def test_an_answer_that_was_cut_is_the_answer_and_is_said_to_be_cut(recorded: Span, reason: str) -> None:
    completed = completed_in(recorded)
    assert completed["final_response"]["parts"] == [{"text": SAID}]
    cause = "because of" if reason == "content_filter" else "at its limit"
    sentence = f"not all of the answer is there: the model stopped {cause} {reason!r}"
    assert sentence in completed["missing"]


@pytest.mark.parametrize("finish", ["stop", "end_turn", "STOP", "stop_sequence", "tool_calls", "refusal", ""])
def test_an_answer_that_has_its_end_is_not_said_to_be_cut(finish: str) -> None:
    assert not any("the model stopped" in each for each in completed_in(standard(finish)).get("missing", []))


def test_the_model_call_that_wrote_the_answer_counts_and_not_one_that_made_a_title() -> None:
    frame = {"openinference.span.kind": "AGENT", "input.value": "What is the time?", "output.value": SAID}
    title = [{"role": "assistant", "parts": [{"type": "text", "content": "A question"}], "finish_reason": "length"}]
    answered = replace(standard(), parent_id=f"{1:016x}", end_ns=3 * 10**9)
    titled = span(3, 1, "chat", CHAT | {"gen_ai.output.messages": json.dumps(title)})
    completed = completed_in(span(1, 0, "agent", frame), answered, titled)
    assert not any("the model stopped" in each for each in completed.get("missing", []))


def test_without_any_text_the_answer_is_missing_because_the_model_stopped() -> None:
    written = json.dumps([{"role": "assistant", "parts": [], "finish_reason": "length"}])
    completed = completed_in(span(2, 0, "chat", CHAT | {"gen_ai.output.messages": written}))
    assert "because of 'length'" in completed["missing"][0]


def test_the_output_of_the_agent_can_say_that_the_answer_was_cut() -> None:
    said = {"type": "ai", "content": SAID, "response_metadata": {"finish_reason": "length"}}
    output = json.dumps({"messages": [{"type": "human", "content": "What is the time?"}, said]})
    frame = {"openinference.span.kind": "CHAIN", "input.value": json.dumps({"messages": ASKED}), "output.value": output}
    answered = replace(without_finish(), parent_id=f"{1:016x}", end_ns=3 * 10**9)
    completed = completed_in(span(1, 0, "LangGraph", frame), answered)
    assert completed["missing"][0] == "not all of the answer is there: the model stopped at its limit 'length'"
