"""Converts an evaluation row to an invocation and its reference."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from traceweir.schemas.dimensions import UNKNOWN, Dimensions, invocation_dimensions, usable_dimensions
from traceweir.schemas.evaluation_row import Chunk, EvaluationRow, Expectations
from traceweir.schemas.invocation import Content, IntermediateData, Invocation, RetrievedChunk
from traceweir.schemas.mlflow_tokens import response_token_usage
from traceweir.schemas.mlflow_trace import MlflowTrace, read_mlflow_trace
from traceweir.schemas.reference import Reference


class RecordedRow(NamedTuple):
    """The content of a row."""

    invocation: Invocation
    reference: Reference | None
    """The expectations of the row and of its trace; None if there are none."""
    dimensions: Dimensions
    """The dimensions that the trace of the row tells, and the model that a chat completion names."""


def read_row(row: EvaluationRow) -> RecordedRow:
    """Returns the invocation of a row and its reference. The columns of the row take precedence over its trace."""
    trace = MlflowTrace() if row.trace is None else read_mlflow_trace(row.trace)
    reference = _reference(_expected(row, trace.expectations))
    return RecordedRow(_invocation(row, trace), reference, _dimensions(row, trace))


def _dimensions(row: EvaluationRow, trace: MlflowTrace) -> Dimensions:
    response = trace.response if row.response is None else row.response
    model = usable_dimensions({"model": response.get("model")}) if isinstance(response, dict) else UNKNOWN
    return invocation_dimensions([trace.dimensions, model])


def _invocation(row: EvaluationRow, trace: MlflowTrace) -> Invocation:
    question = trace_request_text(trace.request) if row.request is None else request_text(row.request)
    answer = response_text(trace.response if row.response is None else row.response)
    unread = list(trace.unread)
    latency = trace.latency_seconds
    if latency is None and row.execution_time_ms is not None:
        latency = row.execution_time_ms / 1000
    return Invocation(
        invocation_id=row.request_id or "",
        user_content=None if question is None else Content.of(question),
        final_response=None if answer is None else Content.of(answer, "model"),
        intermediate_data=IntermediateData(tool_uses=trace.tool_uses, tool_responses=trace.tool_responses),
        retrieved_context=trace.retrieved_context if row.retrieved_context is None else _context(row.retrieved_context),
        token_usage=trace.token_usage or response_token_usage(row.response, unread),
        latency_seconds=latency,
        unread=unread or None,
        labels=trace.labels or None,
    )


def _expected(row: EvaluationRow, in_trace: Expectations) -> Expectations:
    """Returns the expectations of a row, and those of its trace about which the row says nothing.

    Expected facts and an expected response state the same thing in two ways. A row with one of them therefore takes
    neither from its trace.
    """
    has_answer = row.expected_facts is not None or row.expected_response is not None
    facts, response = (
        (row.expected_facts, row.expected_response)
        if has_answer
        else (in_trace.expected_facts, in_trace.expected_response)
    )
    context = row.expected_retrieved_context
    guidelines = row.guidelines
    return Expectations(
        expected_facts=facts,
        expected_response=response,
        expected_retrieved_context=in_trace.expected_retrieved_context if context is None else context,
        guidelines=in_trace.guidelines if guidelines is None else guidelines,
    )


def _reference(expected: Expectations) -> Reference | None:
    if expected == _NOTHING_EXPECTED:
        return None
    response = expected.expected_response
    return Reference(
        final_response=None if response is None else Content.of(response, "model"),
        expected_facts=expected.expected_facts,
        retrieved_context=_context(expected.expected_retrieved_context),
        guidelines=expected.guidelines,
    )


_NOTHING_EXPECTED = Expectations()


def _context(chunks: list[Chunk] | None) -> list[RetrievedChunk] | None:
    return None if chunks is None else [RetrievedChunk(doc_uri=each.doc_uri, content=each.content) for each in chunks]


def trace_request_text(inputs: JsonValue) -> str | None:
    """Returns the question in the inputs of a trace's root span; None without inputs.

    Requests of chat agents, of the Responses API, and split requests are read as in a row. MLflow records the
    arguments of a function by name: a single argument that is text is the question.

    >>> trace_request_text({"question": "What is RAG?"})
    'What is RAG?'
    >>> trace_request_text({"question": "What is RAG?", "top_k": 3})
    "{'question': 'What is RAG?', 'top_k': 3}"
    """
    request = chat_request(inputs)
    if isinstance(request, dict) and len(request) == 1:
        (only,) = request.values()
        request = only if isinstance(only, str) else request
    return None if request is None else request_text(request)


def request_text(request: JsonValue) -> str:
    """Returns the question in a request, as Databricks Agent Evaluation reads it.

    For a single message, the question is its content; for several messages that are all text, the JSON of the messages
    without ASCII escapes; for a split request, its `query` without the history; for any other value, the result of
    `str`.

    >>> request_text({"messages": [{"role": "user", "content": "one"}]})
    'one'
    >>> request_text({"query": "Q", "history": [{"role": "user", "content": "h"}]})
    'Q'
    """
    if isinstance(request, str):
        return request
    if isinstance(request, dict):
        messages = request.get("messages")
        if isinstance(messages, list) and messages:
            contents = [message.get("content") if isinstance(message, dict) else None for message in messages]
            if len(contents) > 1 and all(isinstance(content, str) for content in contents):
                return json.dumps(messages, ensure_ascii=False)
            if isinstance(contents[-1], str):
                return contents[-1]
        if "query" in request:
            return _text(request["query"])
    return " " if request is None else str(request)


def response_text(response: JsonValue) -> str | None:
    """Returns the answer in a response, as Databricks Agent Evaluation reads it.

    The answer is a chat completion's first choice, a chat agent's last message, `content`, or the first element of a
    list. As in MLflow 3, it is also the text of a response of the Responses API.

    >>> response_text({"choices": [{"message": {"content": "hi"}}]})
    'hi'
    >>> response_text({"messages": [{"role": "assistant", "content": "last"}]})
    'last'
    """
    if response is None or isinstance(response, str):
        return response
    if isinstance(response, list):
        return response_text(response[0]) if response else None
    if not isinstance(response, dict):
        return str(response)
    found: JsonValue = responses_api_text(response) or str(response)
    if (content := _content(_first(response.get("choices")), "message")) is not None:
        found = content
    messages = response.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    if isinstance(last, dict) and last.get("content") is not None:
        found = last["content"]
    return _text(response.get("content", found))


def chat_request(request: JsonValue) -> JsonValue:
    """Returns a request of OpenAI's Responses API, which has its messages in `input`, as messages or as text.

    Any other request is returned unchanged.

    >>> chat_request({"input": [{"role": "user", "content": [{"type": "input_text", "text": "q"}]}]})
    {'messages': [{'role': 'user', 'content': 'q'}]}
    """
    if isinstance(request, dict) and "messages" not in request and "query" not in request:
        messages = request.get("input")
        if isinstance(messages, list):
            return {"messages": [_with_text_content(message) for message in messages]}
        return messages if isinstance(messages, str) else request
    return request


def responses_api_text(response: JsonValue) -> str | None:
    """Returns the texts of the messages of a response of OpenAI's Responses API; None if there are none.

    >>> responses_api_text({"output": [{"type": "message", "content": [{"type": "output_text", "text": "a"}]}]})
    'a'
    """
    output = response.get("output") if isinstance(response, dict) else None
    items = output if isinstance(output, list) else ()
    messages = [item for item in items if isinstance(item, dict) and item.get("type", "message") == "message"]
    return "\n".join(text for message in messages for text in _texts(message.get("content"))) or None


def _with_text_content(message: JsonValue) -> JsonValue:
    texts = _texts(message.get("content")) if isinstance(message, dict) else ()
    return {**message, "content": "\n".join(texts)} if isinstance(message, dict) and texts else message


def _texts(content: JsonValue) -> Sequence[str]:
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else ()
    return [text for part in parts if isinstance(part, dict) and isinstance(text := part.get("text"), str)]


def _first(values: JsonValue) -> JsonValue:
    return values[0] if isinstance(values, list) and values else None


def _content(choice: JsonValue, name: str) -> JsonValue:
    message = choice.get(name) if isinstance(choice, dict) else None
    return message.get("content") if isinstance(message, dict) else None


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
