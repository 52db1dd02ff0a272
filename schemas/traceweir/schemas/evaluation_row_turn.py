"""Converts an evaluation row to an invocation and its reference."""

from __future__ import annotations

import json

from pydantic import JsonValue

from traceweir.schemas.evaluation_row import Chunk, EvaluationRow
from traceweir.schemas.invocation import Content, IntermediateData, Invocation, RetrievedChunk
from traceweir.schemas.mlflow_tokens import response_token_usage
from traceweir.schemas.mlflow_trace import MlflowTrace, read_mlflow_trace
from traceweir.schemas.reference import Reference


def invocation_of(row: EvaluationRow) -> Invocation:
    """Returns the invocation of a row. The columns of the row take precedence over its trace."""
    trace = MlflowTrace() if row.trace is None else read_mlflow_trace(row.trace)
    answer = response_text(trace.response if row.response is None else row.response)
    unread = list(trace.unread)
    latency = trace.latency_seconds
    if latency is None and row.execution_time_ms is not None:
        latency = row.execution_time_ms / 1000
    return Invocation(
        invocation_id=row.request_id or "",
        user_content=Content.of(request_text(row.request)),
        final_response=None if answer is None else Content.of(answer, "model"),
        intermediate_data=IntermediateData(tool_uses=trace.tool_uses, tool_responses=trace.tool_responses),
        retrieved_context=trace.retrieved_context if row.retrieved_context is None else _context(row.retrieved_context),
        token_usage=trace.token_usage or response_token_usage(row.response, unread),
        latency_seconds=latency,
        unread=unread or None,
    )


def reference_of(row: EvaluationRow) -> Reference | None:
    """Returns the expectations in the row; None if it contains none."""
    expected = row.expected_response
    if expected is None and row.expected_facts is None and row.expected_retrieved_context is None:
        return None
    return Reference(
        final_response=None if expected is None else Content.of(expected, "model"),
        expected_facts=row.expected_facts,
        retrieved_context=_context(row.expected_retrieved_context),
    )


def _context(chunks: list[Chunk] | None) -> list[RetrievedChunk] | None:
    return None if chunks is None else [RetrievedChunk(doc_uri=each.doc_uri, content=each.content) for each in chunks]


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
    list.

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
    found: JsonValue = str(response)
    if (content := _content(_first(response.get("choices")), "message")) is not None:
        found = content
    messages = response.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    if isinstance(last, dict) and last.get("content") is not None:
        found = last["content"]
    return _text(response.get("content", found))


def _first(values: JsonValue) -> JsonValue:
    return values[0] if isinstance(values, list) and values else None


def _content(choice: JsonValue, name: str) -> JsonValue:
    message = choice.get(name) if isinstance(choice, dict) else None
    return message.get("content") if isinstance(message, dict) else None


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
