"""Reads an MLflow trace for an evaluation: question, answer, context, tool calls, tokens, duration, expectations.

The rules are those of Databricks Agent Evaluation (`databricks-agents` 0.22 and 1.13). A part that cannot be read is
absent, and `unread` contains the reason. Only a document that is not a trace is an error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.dimensions import UNKNOWN, Dimensions
from traceweir.schemas.evaluation_row import Expectations
from traceweir.schemas.invocation import FunctionCall, FunctionResponse, RecordedLabel, RetrievedChunk, TokenUsage
from traceweir.schemas.mlflow_assessments import trace_expectations, trace_labels
from traceweir.schemas.mlflow_dimensions import mlflow_dimensions
from traceweir.schemas.mlflow_spans import (
    INPUTS,
    MESSAGES,
    NUMBER_RANGE,
    OUTPUTS,
    MlflowSpan,
    SpanTree,
    decoded,
    number,
    read_spans,
)
from traceweir.schemas.mlflow_tokens import trace_token_usage

DOC_URI = "doc_uri"
"""The key of a document's URI in a chunk's metadata, unless the model sets another key by `set_retriever_schema`."""
_NO_MESSAGE = "the step failed; its span tells no message"
_SECONDS = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)s")


@dataclass(frozen=True, slots=True)
class MlflowTrace:
    """Holds the data of an invocation from its trace; None if the trace does not contain the data."""

    request: JsonValue = None
    """The input of the root span, in any shape."""
    response: JsonValue = None
    """The output of the root span, in any shape."""
    model_output: JsonValue = field(default=None, compare=False)
    """The output of the last model call, in any shape."""
    retrieved_context: list[RetrievedChunk] | None = None
    tool_uses: list[FunctionCall] = field(default_factory=list)
    tool_responses: list[FunctionResponse] = field(default_factory=list)
    token_usage: TokenUsage | None = None
    latency_seconds: float | None = None
    expectations: Expectations = field(default_factory=Expectations)
    """The expectations that were attached to the trace as assessments."""
    labels: list[RecordedLabel] = field(default_factory=list)
    """The feedback that was attached to the trace."""
    dimensions: Dimensions = UNKNOWN
    """The user, the version, the labels and the id in OpenTelemetry, as far as the trace tells them."""
    error: str | None = None
    """The error of a root span that failed without an output; None if it did not."""
    unread: list[str] = field(default_factory=list)
    """A sentence for each part of the trace that could not be read."""


def read_mlflow_trace(document: JsonValue) -> MlflowTrace:
    """Returns the data in a trace of MLflow 2 or 3, from its JSON text or its parsed JSON.

    Request and response are the input and the output of the root span. The retrieved context is the output of the top-level RETRIEVER span
    that started last; a RETRIEVER span is top-level if it has no RETRIEVER ancestor. The tool calls are those in the
    messages of CHAT_MODEL spans, or else the TOOL spans. `trace_token_usage` defines the tokens.

    Raises:
        TraceUnreadable: the document is not a trace, or is truncated.
    """
    tree = read_spans(document)
    unread = [
        f"attribute {name!r} of span {span.name[:80]!r} is not JSON" for span in tree.spans for name in span.unreadable
    ]
    root = tree.root
    failed = root is not None and root.error is not None and root.attributes.get(OUTPUTS) is None
    uses, responses = _tool_calls(tree.spans, unread)
    return MlflowTrace(
        request=root.attributes.get(INPUTS) if root else None,
        response=root.attributes.get(OUTPUTS) if root else None,
        model_output=_model_output(tree.spans),
        retrieved_context=_retrieved(tree, unread),
        tool_uses=uses,
        tool_responses=responses,
        token_usage=trace_token_usage(tree, unread),
        latency_seconds=_latency(tree.info, unread),
        expectations=trace_expectations(tree.info, unread),
        labels=trace_labels(tree.info),
        dimensions=mlflow_dimensions(tree.info),
        unread=unread,
        error=(root.error or _NO_MESSAGE) if root is not None and failed else None,
    )


def _model_output(spans: Sequence[MlflowSpan]) -> JsonValue:
    models = [span for span in spans if span.kind in ("CHAT_MODEL", "LLM")]
    last = max(models, key=lambda span: span.start_ns or 0, default=None)
    return last.attributes.get(OUTPUTS) if last is not None else None


def _retrieved(tree: SpanTree, unread: list[str]) -> list[RetrievedChunk] | None:
    top = tree.outermost("RETRIEVER")
    if not top:
        return None
    last = top[-1]
    if all(span.start_ns is not None for span in top):
        last = max(reversed(top), key=lambda span: span.start_ns or 0)
    if OUTPUTS in last.unreadable:
        return None
    outputs = last.attributes.get(OUTPUTS) or []
    key = _doc_uri_key(tree.info)
    chunks = [_chunk(chunk, key) for chunk in outputs] if isinstance(outputs, list) else [None]
    if None in chunks:
        unread.append(
            f"the output of span {last.name[:80]!r} is not a list of documents with page_content, content or text, and metadata"
        )
        return None
    return [chunk for chunk in chunks if chunk is not None]


def _chunk(chunk: JsonValue, key: str) -> RetrievedChunk | None:
    if not chunk:
        return RetrievedChunk()
    metadata = chunk.get("metadata", {}) if isinstance(chunk, dict) else None
    if not isinstance(chunk, dict) or not isinstance(metadata, dict):
        return None
    uri = metadata.get(key)
    # As MLflow 3.17.
    content = next((chunk[name] for name in ("page_content", "content", "text") if chunk.get(name) is not None), None)
    if not isinstance(uri, str | None) or not isinstance(content, str | None):
        return None
    return RetrievedChunk(doc_uri=uri, content=content)


def _doc_uri_key(info: JsonObject) -> str:
    """Returns the URI key of the last retriever schema, which MLflow stores in the trace's tags."""
    tags = info.get("tags")
    schemas = tags.get("retrievers") if isinstance(tags, dict) else None
    try:
        schemas = decoded(schemas) if isinstance(schemas, str) else schemas
    except ValueError:
        return DOC_URI
    last = schemas[-1] if isinstance(schemas, list) and schemas else None
    key = last.get("doc_uri") if isinstance(last, dict) else None
    return key if isinstance(key, str) and key else DOC_URI


def _tool_calls(spans: Sequence[MlflowSpan], unread: list[str]) -> tuple[list[FunctionCall], list[FunctionResponse]]:
    uses: dict[str, FunctionCall] = {}
    answers: dict[str, JsonValue] = {}
    for at, span in enumerate(spans):
        messages = span.attributes.get(MESSAGES) if span.kind == "CHAT_MODEL" else None
        for place, message in enumerate(messages if isinstance(messages, list) else ()):
            answer = f"{at}:{place}"
            if not isinstance(message, dict):
                continue
            calls = message.get("tool_calls") if message.get("role") == "assistant" else None
            calls = calls if isinstance(calls, list) else []
            for call in calls:
                use = _use(call, len(uses), unread, answer if len(calls) > 1 else None)
                # The messages of the next model call repeat the earlier conversation.
                if use is not None:
                    uses.setdefault(use.id or "", use)
            answered = message.get("tool_call_id") if message.get("role") == "tool" else None
            if isinstance(answered, str):
                answers.setdefault(answered, message.get("content"))
    if uses:
        found = [
            FunctionResponse(id=name, name=use.name, response=answers[name])
            for name, use in uses.items()
            if name in answers
        ]
        return list(uses.values()), found
    tools = [span for span in spans if span.kind == "TOOL"]
    calls_made = [
        FunctionCall(id=_call_id(span), name=span.name, args=_arguments(span.attributes.get(INPUTS), span.name, unread))
        for span in tools
    ]
    responses = [
        FunctionResponse(
            id=_call_id(span),
            name=span.name,
            response=span.attributes.get(OUTPUTS) if span.error is None else {"error": span.error or _NO_MESSAGE},
        )
        for span in tools
    ]
    return calls_made, responses


def _use(call: JsonValue, number: int, unread: list[str], answer: str | None) -> FunctionCall | None:
    function = call.get("function") if isinstance(call, dict) else None
    if (
        not isinstance(call, dict)
        or not isinstance(function, dict)
        or not isinstance(name := function.get("name"), str)
    ):
        unread.append("a tool call in a model's messages has no function name")
        return None
    given = call.get("id")
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = decoded(arguments)
        except ValueError:
            unread.append(f"the arguments of a call of tool {name[:80]!r} are not JSON")
            arguments = None
    return FunctionCall(
        id=given if isinstance(given, str) and given else f"#{number}",
        name=name,
        args=_arguments(arguments, name, unread),
        model_call_id=answer,
    )


def _arguments(given: JsonValue, name: str, unread: list[str]) -> JsonObject | None:
    if given is None or isinstance(given, dict):
        return given
    unread.append(f"the arguments of a call of tool {name[:80]!r} are not an object")
    return None


def _call_id(span: MlflowSpan) -> str | None:
    outputs = span.attributes.get(OUTPUTS)
    found = outputs.get("tool_call_id") if isinstance(outputs, dict) else None
    return found if isinstance(found, str) else None


def _latency(info: JsonObject, unread: list[str]) -> float | None:
    """Returns the duration in seconds.

    MLflow 2 has `execution_time_ms`, MLflow 3 `execution_duration_ms`, and its REST API `execution_duration`, such as
    `1.5s`.
    """
    for name in ("execution_duration_ms", "execution_time_ms"):
        given = info.get(name)
        found = number(given)
        if found is not None and found >= 0:
            return found / 1000
        if given is not None:
            unread.append(f"the trace's {name} is not a number {NUMBER_RANGE}")
    duration = info.get("execution_duration")
    written = _SECONDS.fullmatch(duration) if isinstance(duration, str) else None
    return float(written[1]) if written else None
