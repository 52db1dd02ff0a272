"""Vercel's AI SDK. Versions 5 and 6 have keys of their own; version 7 keeps to the standard."""

from __future__ import annotations

from traceweir.streams.intake.spans.api_bodies import requested
from traceweir.streams.intake.spans.attributes import first_text, json_in_text, structure, text_of
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.genai import operation_of
from traceweir.streams.intake.spans.conventions.source import Rank, Source, as_it_is, attributes
from traceweir.streams.intake.spans.message import SpanMessage
from traceweir.streams.intake.spans.messages import read_message, read_messages
from traceweir.streams.intake.spans.span import Kind, Span
from traceweir.streams.intake.spans.texts_in_values import answer_in, question_in

_KIND = "ai.operationId"
_KINDS: dict[str, Kind] = {
    "ai.generateText": "agent",
    "ai.streamText": "agent",
    "ai.generateObject": "agent",
    "ai.streamObject": "agent",
    "ai.toolCall": "tool",
}
_TEXT = "ai.response.text"
_OBJECTS = ("ai.response.object", "ai.result.object")
"""An answer in a schema, as JSON."""
_TEXTS = (_TEXT, "ai.result.text", *_OBJECTS)
_SESSIONS = ("ai.telemetry.metadata.sessionId", "ai.settings.context.sessionId")
_CALLS = ("ai.response.toolCalls", "ai.result.toolCalls")


def _kind(span: Span) -> Kind | None:
    word = first_text(span.attributes, _KIND)
    if not word or operation_of(span.attributes):
        return None
    return "llm" if word.endswith((".doGenerate", ".doStream")) else _KINDS.get(word, "other")


def _agent_of(span: Span) -> str:
    if span.name.startswith("invoke_agent "):
        return ""
    return first_text(span.attributes, "ai.telemetry.functionId")


def _repeats_question(span: Span) -> bool:
    """Returns whether the prompt of a run of a session ends with an approval, or with the result of a tool.

    Without a session, nothing joins the run with the one that made the call.
    """
    if first_text(span.attributes, _KIND) not in _KINDS or not any(key in span.attributes for key in _SESSIONS):
        return False
    prompt = structure(span.attributes.get("ai.prompt"))
    messages = prompt.get("messages") if isinstance(prompt, dict) else None
    last = messages[-1] if isinstance(messages, list) and messages else None
    return isinstance(last, dict) and last.get("role") == "tool"


def _read_output(span: Span, _: object) -> list[SpanMessage]:
    text = next((span.attributes[k] for k in _TEXTS if k in span.attributes), None)
    calls = structure(next((span.attributes[k] for k in _CALLS if k in span.attributes), None))
    if text is None and not isinstance(calls, list):
        return []
    return [read_message({"role": "assistant", "content": text_of(text), "tool_calls": calls}, "assistant")]


AI_SDK = Convention(
    name="AI SDK",
    kind_keys=(_KIND,),
    kind=_kind,
    switches=(
        Switch(
            "experimental_telemetry: {recordInputs: true, recordOutputs: true}",
            keys=(_KIND, "ai.telemetry."),
        ),
        Switch("telemetry: {recordInputs: true, recordOutputs: true} (AI SDK 7)", scopes=("gen_ai",)),
    ),
    sessions=_SESSIONS,
    users=("ai.telemetry.metadata.userId", "ai.settings.context.userId"),
    agent_of={"agent": _agent_of},
    repeats_question=_repeats_question,
    models=("ai.response.model",),
    requested_models=("ai.model.id",),
    input_tokens=("ai.usage.inputTokens", "ai.usage.promptTokens"),
    output_tokens=("ai.usage.outputTokens", "ai.usage.completionTokens"),
    contents=_TEXTS,
    finishes=("ai.response.finishReason",),
    inputs=(
        *attributes(read_messages, Rank.BODY, "ai.prompt.messages"),
        *attributes(requested, Rank.BODY, "ai.prompt"),
    ),
    outputs=tuple(Source(key, _read_output, Rank.BODY) for key in (*_TEXTS, *_CALLS)),
    questions=attributes(question_in, Rank.FRAME, "ai.prompt"),
    answers=(*attributes(answer_in, Rank.FRAME, _TEXT), *attributes(text_of, Rank.FRAME, *_OBJECTS)),
    tool_ids=("ai.toolCall.id",),
    tool_names=("ai.toolCall.name",),
    arguments=(Source("ai.toolCall.args", as_it_is, Rank.VALUE),),
    results=attributes(json_in_text, Rank.FRAME, "ai.toolCall.result"),
)
