"""What an evaluation reads out of an MLflow trace: answer, retrieved context, tool calls, tokens, duration.

The rules are those of Databricks Agent Evaluation (`databricks-agents` 0.22 and 1.13). Whatever cannot be read is absent, and `unread`
says what and why; nothing but the trace as a whole being none is an error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject, whole
from traceweir.schemas.invocation import FunctionCall, FunctionResponse, RetrievedChunk, TokenUsage
from traceweir.schemas.mlflow_spans import INPUTS, MESSAGES, OUTPUTS, Span, SpanTree, decoded, number, read_spans

MODELS = ("LLM", "CHAT_MODEL")
DOC_URI = "doc_uri"
"""The key of a document's URI in a chunk's metadata, unless the model has set another by `set_retriever_schema`."""
_RANGE = "from 0 to 2^63 - 1"
_SECONDS = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)s")


@dataclass(frozen=True, slots=True)
class MlflowTrace:
    """What a trace says of the invocation that it was recorded of; None is: it does not say."""

    response: JsonValue = None
    """What the root span gave, in whatever shape."""
    retrieved_context: list[RetrievedChunk] | None = None
    tool_uses: list[FunctionCall] = field(default_factory=list)
    tool_responses: list[FunctionResponse] = field(default_factory=list)
    token_usage: TokenUsage | None = None
    latency_seconds: float | None = None
    unread: list[str] = field(default_factory=list)
    """A sentence for each thing that is there and could not be read."""


def read_mlflow_trace(document: JsonValue) -> MlflowTrace:
    """What a trace of MLflow 2 or 3 says, given as its JSON text or as what JSON made of it.

    The response is the root span's output. The retrieved context is what the last top-level RETRIEVER span gave: last by its start,
    and top-level if no other RETRIEVER is around it. Tool calls are those in the messages of CHAT_MODEL spans, else the TOOL spans.
    Tokens are those of the LLM and CHAT_MODEL spans that have no span inside: `prompt_tokens` and `completion_tokens` of
    `llm_output`, else of `usage`.

    Raises:
        TraceUnreadable: it is no trace, or one that was cut off.
    """
    tree = read_spans(document)
    unread = [
        f"attribute {name!r} of span {span.name[:80]!r} is not JSON" for span in tree.spans for name in span.unreadable
    ]
    root = next((span for span in tree.spans if span.parent_id is None), None)
    uses, responses = _tool_calls(tree.spans, unread)
    return MlflowTrace(
        response=root.attributes.get(OUTPUTS) if root else None,
        retrieved_context=_retrieved(tree, unread),
        tool_uses=uses,
        tool_responses=responses,
        token_usage=_token_usage(tree.leaves(), unread),
        latency_seconds=_latency(tree.info, unread),
        unread=unread,
    )


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
        unread.append(f"what span {last.name[:80]!r} retrieved is no list of documents with page_content and metadata")
        return None
    return [chunk for chunk in chunks if chunk is not None]


def _chunk(chunk: JsonValue, key: str) -> RetrievedChunk | None:
    if not chunk:
        return RetrievedChunk()
    metadata = chunk.get("metadata", {}) if isinstance(chunk, dict) else None
    if not isinstance(chunk, dict) or not isinstance(metadata, dict):
        return None
    uri, content = metadata.get(key), chunk.get("page_content")
    if not isinstance(uri, str | None) or not isinstance(content, str | None):
        return None
    return RetrievedChunk(doc_uri=uri, content=content)


def _doc_uri_key(info: JsonObject) -> str:
    """The last retriever schema's, which MLflow leaves in the trace's tags."""
    tags = info.get("tags")
    schemas = tags.get("retrievers") if isinstance(tags, dict) else None
    try:
        schemas = decoded(schemas) if isinstance(schemas, str) else schemas
    except ValueError:
        return DOC_URI
    last = schemas[-1] if isinstance(schemas, list) and schemas else None
    key = last.get("doc_uri") if isinstance(last, dict) else None
    return key if isinstance(key, str) and key else DOC_URI


def _tool_calls(spans: Sequence[Span], unread: list[str]) -> tuple[list[FunctionCall], list[FunctionResponse]]:
    uses: dict[str, FunctionCall] = {}
    answers: dict[str, JsonValue] = {}
    for span in spans:
        messages = span.attributes.get(MESSAGES) if span.kind == "CHAT_MODEL" else None
        for message in messages if isinstance(messages, list) else ():
            if not isinstance(message, dict):
                continue
            calls = message.get("tool_calls") if message.get("role") == "assistant" else None
            for call in calls if isinstance(calls, list) else ():
                use = _use(call, len(uses), unread)
                if use is not None:  # the next model call repeats the conversation so far
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
        FunctionResponse(id=_call_id(span), name=span.name, response=span.attributes.get(OUTPUTS)) for span in tools
    ]
    return calls_made, responses


def _use(call: JsonValue, number: int, unread: list[str]) -> FunctionCall | None:
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
    )


def _arguments(given: JsonValue, name: str, unread: list[str]) -> JsonObject | None:
    if given is None or isinstance(given, dict):
        return given
    unread.append(f"the arguments of a call of tool {name[:80]!r} are no object")
    return None


def _call_id(span: Span) -> str | None:
    outputs = span.attributes.get(OUTPUTS)
    found = outputs.get("tool_call_id") if isinstance(outputs, dict) else None
    return found if isinstance(found, str) else None


def _token_usage(leaves: Sequence[Span], unread: list[str]) -> TokenUsage | None:
    counts: dict[str, list[int]] = {"prompt_tokens": [], "completion_tokens": []}
    for span in leaves:
        outputs = span.attributes.get(OUTPUTS) if span.kind in MODELS else None
        if not isinstance(outputs, dict):
            continue
        usage = outputs.get("llm_output", outputs.get("usage"))
        for name, found in counts.items():
            given = usage.get(name) if isinstance(usage, dict) else None
            count = whole(number(given))
            if isinstance(count, int) and count >= 0:
                found.append(count)
            elif given is not None:
                unread.append(f"{name} of span {span.name[:80]!r} is no whole number {_RANGE}")
    read, written = (_sum(name, found, unread) for name, found in counts.items())
    return None if read is None and written is None else TokenUsage(input_tokens=read, output_tokens=written)


def _sum(name: str, counts: Sequence[int], unread: list[str]) -> int | None:
    total = sum(counts) if counts else None
    if total is not None and number(total) is None:
        unread.append(f"the sum of {name} is not {_RANGE}")
        return None
    return total


def _latency(info: JsonObject, unread: list[str]) -> float | None:
    """Seconds: MLflow 2 has `execution_time_ms`, MLflow 3 `execution_duration_ms`, its REST API `execution_duration` like `1.5s`."""
    for name in ("execution_duration_ms", "execution_time_ms"):
        given = info.get(name)
        found = number(given)
        if found is not None and found >= 0:
            return found / 1000
        if given is not None:
            unread.append(f"the trace's {name} is no number {_RANGE}")
    duration = info.get("execution_duration")
    written = _SECONDS.fullmatch(duration) if isinstance(duration, str) else None
    return float(written[1]) if written else None
