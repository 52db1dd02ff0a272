"""Tests that logs of model calls, as LiteLLM and Helicone write them, are read, or refused with what they are."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from tests.support.chat_files import Document, answer, invocations, lines, read, read_traceweir
from tests.support.openai_chat import NOON

from traceweir.streams.intake.formats.base import InputContext
from traceweir.streams.intake.formats.documents import read_documents
from traceweir.streams.intake.formats.recognition import read_recognized
from traceweir.streams.intake.formats.traceweir_json import TRACEWEIR

ASKED = [{"role": "user", "content": "Why?"}]
COMPLETION: Document = {
    "id": "c-1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "So."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4},
}
MESSAGE: Document = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "So."}]}
RESPONSE: Document = {
    "id": "r-1",
    "object": "response",
    "status": "completed",
    "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]}],
}
CANDIDATES: Document = {"candidates": [{"content": {"parts": [{"text": "So."}]}, "finishReason": "STOP"}]}
PIECES: list[Document] = [
    {"delta": {"content": "S"}},
    {"delta": {"content": "o."}},
    {"delta": {}, "finish_reason": "stop"},
]
CHUNKS: list[Document] = [{"id": "c", "object": "chat.completion.chunk", "choices": [each]} for each in PIECES]
SENT = "".join(f"data: {json.dumps(each)}\n\n" for each in CHUNKS) + "data: [DONE]\n\n"


def litellm(response: Any, messages: Any = ASKED, **more: Any) -> Document:
    standard = {"id": "q-1", "trace_id": "t", "call_type": "acompletion", "status": "success", "response_cost": 0.1}
    timed = {"startTime": 1769860800.5, "endTime": 1769860801.5, "metadata": {"user_api_key_hash": "h"}}
    return {**standard, **timed, "model": "m", "messages": messages, "response": response, **more}


def helicone(request: Any, response: Any, **more: Any) -> Document:
    about = {"request_id": "q-1", "request_created_at": "2026-01-31T12:00:00Z", "request_path": "/v1/chat/completions"}
    return {**about, "request_body": request, "response_body": response, "latency": 900, **more}


LOGS: dict[str, Document] = {
    "LiteLLM": litellm(COMPLETION),
    "LiteLLM with texts": litellm("So.", "Why?"),
    "LiteLLM with JSON in texts": litellm(json.dumps(COMPLETION), json.dumps(ASKED)),
    "LiteLLM with a response": litellm(RESPONSE, call_type="aresponses"),
    "LiteLLM with a message of Anthropic": litellm(MESSAGE, call_type="anthropic_messages"),
    "the messages and the answer of the API": {"session_id": "q-1", "messages": ASKED, "response": COMPLETION},
    "the items of a request and a response": {"session_id": "q-1", "input": ASKED, "response": RESPONSE},
    "Helicone": helicone({"model": "m", "messages": ASKED}, COMPLETION),
    "Helicone with JSON in texts": helicone(json.dumps({"messages": ASKED}), json.dumps(COMPLETION)),
    "Helicone with Anthropic": helicone({"messages": ASKED, "max_tokens": 9}, MESSAGE),
    "Helicone with Gemini": helicone({"contents": [{"role": "user", "parts": [{"text": "Why?"}]}]}, CANDIDATES),
    "Helicone with a response": helicone({"input": "Why?"}, RESPONSE),
    "Helicone with a stream": helicone({"messages": ASKED}, {"streamed_data": SENT}),
    "a stream in a text": helicone({"messages": ASKED}, SENT),
    "a request and a response of HTTP": {
        "id": "q-1",
        "request": {"method": "POST", "path": "/v1/chat/completions", "body": {"messages": ASKED}},
        "response": {"status": 200, "body": COMPLETION},
    },
    "a logger of Helicone": {
        "request_id": "q-1",
        "providerRequest": {"url": "custom", "json": {"messages": ASKED}, "meta": {}},
        "providerResponse": {"status": 200, "json": COMPLETION, "headers": {}},
    },
}


TOKENS: Document = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
MEASURED: dict[str, Document] = {
    "LiteLLM with a text": litellm("So.", **TOKENS),
    "LiteLLM with a completion": litellm(COMPLETION, **TOKENS),
    "LiteLLM with a message of Anthropic": litellm(MESSAGE, **TOKENS),
    "LiteLLM with a response": litellm(RESPONSE, **TOKENS),
    "Helicone": helicone({"messages": ASKED}, COMPLETION, request_model="x", response_model="m"),
    "Helicone with a request": helicone({"messages": ASKED, "model": "m"}, MESSAGE, **TOKENS),
    "a completion of another model": litellm({**COMPLETION, "model": "m"}, model="x", prompt_tokens=1),
}


@pytest.mark.parametrize("log", MEASURED.values(), ids=MEASURED)
def test_the_model_and_the_tokens_beside_a_response_without_them_are_used(log: Document) -> None:
    (found,) = read(lines(log))
    called = [each for record in found.records if (each := json.loads(record.value)).get("type") == "model.called"]

    assert [(each["model"], each["input_tokens"], each["output_tokens"]) for each in called] == [("m", 3, 4)]


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_a_log_of_a_call_has_its_question_and_its_answer_in_the_session_of_its_id(log: Document) -> None:
    (found,) = read(lines(log))
    (turn,) = invocations(lines(log))

    assert found.problem is None
    assert {record.session_id for record in found.records} == {"q-1"}
    assert (turn.user_content.text if turn.user_content else None) == "Why?"
    assert answer(turn) == "So."


FAILED: dict[str, tuple[Document, str]] = {
    "LiteLLM": (litellm({}, status="failure", error_str="RateLimitError: slow down"), "RateLimitError: slow down"),
    "LiteLLM without a reason": (litellm(None, status="failure"), "the request has failed"),
    "Helicone": (helicone({"messages": ASKED}, {"error": {"message": "bad", "type": "invalid"}}), "invalid: bad"),
    "a status": (helicone({"messages": ASKED}, None, response_status=502), "502: the request has failed"),
}


@pytest.mark.parametrize(("log", "error"), FAILED.values(), ids=FAILED)
def test_a_log_of_a_call_that_has_failed_is_a_failed_turn(log: Document, error: str) -> None:
    (turn,) = invocations(lines(log))

    assert (answer(turn), turn.error) == (None, error)


@pytest.mark.parametrize(
    "log",
    [
        litellm({"data": []}, "hi", call_type="aembedding"),
        helicone({"input": "hi"}, {"data": [{"object": "embedding"}]}),
        helicone({"messages": ASKED}, None),
    ],
)
def test_a_log_without_the_answer_of_a_chat_is_refused_with_what_it_is(log: Document) -> None:
    (found,) = read_traceweir(lines(log))

    assert found.records == []
    assert "looks like a log of a model call without messages and the answer of a chat (its response is" in str(
        found.problem
    )


def test_what_else_a_log_has_is_named() -> None:
    context = InputContext("f", NOON)
    text = lines(helicone({"messages": ASKED}, COMPLETION, expected_response="So."), litellm(COMPLETION, id="q-2"))

    found = [*read_recognized(TRACEWEIR, read_documents(io.BytesIO(text.encode())), context)]

    assert [each.problem for each in found] == [None, None]
    assert list(context.unread_keys.lines("f")) == ["f: key of a transcript 'expected_response' is not read (1 time)"]


def test_a_row_keeps_its_expectations_beside_the_answer_of_the_api() -> None:
    row = {"request": {"messages": ASKED}, "response": COMPLETION, "expected_response": "So."}

    (found,) = read_traceweir(lines(row))

    assert [b'"expected_response":"So."' in record.value for record in found.records[:1]] == [True]
