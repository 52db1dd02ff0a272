"""What another version of a library, or one without its clients' spans, writes in another place is read there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span, SpanEvent

ASKED = {"role": "user", "parts": [{"type": "text", "content": "Hours?"}]}
CALL = {"type": "tool_call", "id": "c1", "name": "hours", "arguments": {"day": "Sunday"}}
RESULT = {"type": "tool_call_response", "id": "c1", "name": "hours", "result": {"open": False}}
ANSWER = {"role": "assistant", "parts": [{"type": "text", "content": "Closed."}], "finish_reason": "stop"}


def events(*spans: Span) -> dict[str, dict[str, Any]]:
    """Returns the last event of each type."""
    return {each["type"]: each for each in read_trace(spans).events}


def answer_of(*spans: Span) -> str:
    return "".join(part["text"] for part in events(*spans)["invocation.completed"]["final_response"]["parts"])


def run(**attributes: Any) -> Span:
    """Returns the span of a run of pydantic-ai."""
    there = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk", "model_name": "m"}
    return span(1, 0, "agent run", {**there, **attributes}, scope="pydantic-ai")


def test_the_calls_of_an_agent_without_spans_of_its_models_are_in_its_messages() -> None:
    told = [ASKED, {"role": "assistant", "parts": [CALL]}, {"role": "user", "parts": [RESULT]}, ANSWER]
    found = events(run(**{"pydantic_ai.all_messages": json.dumps(told), "final_result": "Closed."}))
    assert (found["tool.called"]["args"], found["tool.returned"]["response"]) == ({"day": "Sunday"}, {"open": False})
    assert not [each for each in found["invocation.completed"]["missing"] if "tool calls" in each]


def test_the_result_of_an_agent_is_its_answer_also_if_it_is_an_object() -> None:
    for text in ('{"open": false}', "[1, 2]", "48", "Closed."):
        assert answer_of(run(final_result=text)) == text
    assert answer_of(run(final_result={"open": False})) == '{"open": false}'


def test_a_model_and_its_tokens_are_in_the_answer_of_the_api() -> None:
    answer = {"model": "m-2", "usage": {"prompt_tokens": 7, "completion_tokens": 2}, "choices": [{"message": ANSWER}]}
    kind = {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": json.dumps({"model": "m", "messages": [ASKED]})}
    found = events(span(1, 0, "Completions", {**kind, "mlflow.spanOutputs": json.dumps(answer)}))["model.called"]
    assert (found["model"], found["input_tokens"], found["output_tokens"]) == ("m-2", 7, 2)
    # What MLflow has counted goes before the words of the API.
    usage = {
        "mlflow.chat.tokenUsage": '{"input_tokens": 9, "output_tokens": 2}',
        "mlflow.spanOutputs": json.dumps(answer),
    }
    assert events(span(1, 0, "Completions", {**kind, **usage}))["model.called"]["input_tokens"] == 9
    assert events(span(1, 0, "Completions", {**kind, "mlflow.spanOutputs": "null"}))["model.called"]["model"] == "m"


def test_a_list_of_parts_in_a_text_is_no_text() -> None:
    parts = [{"type": "text", "text": "Hours?"}, {"type": "image_url", "image_url": {"url": "https://example.org/a"}}]
    prompt = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": json.dumps(parts)}
    answer = {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "Closed."}
    started = events(span(1, 0, "openai.chat", {"llm.request.type": "chat"} | prompt | answer))["invocation.started"]
    assert started["user_content"]["parts"] == [{"text": "Hours?"}]
    assert started["missing"] == ["not all of the question is text: 1 part of type 'image_url'"]


def test_an_object_in_a_schema_is_the_answer() -> None:
    there = {"ai.model.id": "m", "ai.response.object": '{"open":false}'}
    outer = {"ai.operationId": "ai.generateObject", "ai.prompt": json.dumps({"prompt": "Hours?"})} | there
    usage = {"ai.usage.inputTokens": 7, "ai.usage.outputTokens": 2}
    inner = {"ai.operationId": "ai.generateObject.doGenerate", "ai.prompt.messages": "[]"} | there | usage
    spans = [span(1, 0, "ai.generateObject", outer), span(2, 1, "ai.generateObject.doGenerate", inner)]
    for known in (spans, spans[:1], spans[1:]):
        assert answer_of(*known) == '{"open":false}'
    called = events(*spans)["model.called"]
    assert (called["input_tokens"], called["output_tokens"]) == (7, 2)


@pytest.mark.parametrize(
    "operation", ["chat.completions", "chat.streaming_completions", "text.completions", "responses"]
)
def test_the_former_words_of_an_operation_are_model_calls(operation: str) -> None:
    there = {"gen_ai.operation.name": operation, "gen_ai.request.model": "m"}
    tokens = {"gen_ai.response.prompt_tokens": 7, "gen_ai.response.completion_tokens": 2}
    content = {"gen_ai.prompt": json.dumps([{"role": "user", "content": "Hours?"}])}
    answer = {"gen_ai.completion": json.dumps([{"role": "assistant", "content": "Closed."}])}
    told = [SpanEvent("gen_ai.content.prompt", 1, content), SpanEvent("gen_ai.content.completion", 2, answer)]
    chat = span(1, 0, f"{operation} m", there | tokens, *told, scope="semantic_kernel")
    called = events(chat)["model.called"]
    assert (called["input_tokens"], called["output_tokens"], answer_of(chat)) == (7, 2, "Closed.")


def test_the_answer_of_bedrock_is_read_from_the_response_of_its_api() -> None:
    answer = {
        "output": {"message": {"role": "assistant", "content": [{"text": "Closed."}]}},
        "stopReason": "max_tokens",
    }
    there = {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanOutputs": json.dumps(answer)}
    chat = span(1, 0, "BedrockRuntime.converse", there)
    assert answer_of(chat) == "Closed."
    assert any("max_tokens" in each for each in events(chat)["invocation.completed"]["missing"])


def test_the_prompt_of_a_model_can_be_a_text_alone() -> None:
    there = {"openinference.span.kind": "LLM", "llm.model_name": "m", "output.value": "Closed."}
    for text, mime, question in (
        ("Hours?", "text/plain", "Hours?"),
        ("Hours?", None, "Hours?"),
        ("[HumanMessage(content='Hours?')]", "text/plain", ""),
        ("__REDACTED__", "text/plain", ""),
    ):
        found = events(span(1, 0, "LLM", {**there, "input.value": text, "input.mime_type": mime}))
        asked = found["invocation.started"].get("user_content", {"parts": []})
        assert "".join(part["text"] for part in asked["parts"]) == question


@pytest.mark.parametrize("is_event", [True, False])
def test_a_prompt_with_a_role_before_each_message_is_its_messages(is_event: bool) -> None:
    prompt = "system: Be brief.\nuser: Hi\nassistant: Hello.\nuser: Hours?\nOn Sunday, I mean."
    there = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    told = [
        SpanEvent("gen_ai.content.prompt", 1, {"gen_ai.prompt": prompt}),
        SpanEvent("gen_ai.content.completion", 2, {"gen_ai.completion": "Closed."}),
    ]
    content = {"gen_ai.content.prompt": prompt, "gen_ai.content.completion": "Closed."}
    chat = span(1, 0, "chat m", there | ({} if is_event else content), *(told if is_event else ()), scope="openlit")
    found = events(chat)
    assert found["invocation.started"]["user_content"]["parts"] == [{"text": "Hours?\nOn Sunday, I mean."}]
    assert answer_of(chat) == "Closed."
