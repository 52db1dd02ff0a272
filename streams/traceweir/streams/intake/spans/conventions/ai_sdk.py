"""Vercel's AI SDK. Versions 5 and 6 have keys of their own; version 7 keeps to the standard."""

from __future__ import annotations

from traceweir.streams.intake.spans.attributes import first_text
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.genai import operation_of
from traceweir.streams.intake.spans.span import Kind, Span

_KINDS: dict[str, Kind] = {"ai.generateText": "agent", "ai.streamText": "agent", "ai.toolCall": "tool"}


def _kind(span: Span) -> Kind | None:
    word = first_text(span.attributes, "ai.operationId")
    if not word or operation_of(span.attributes):
        return None
    return "llm" if word.endswith((".doGenerate", ".doStream")) else _KINDS.get(word, "other")


def _agent_of(span: Span, kind: Kind) -> str:
    if kind != "agent" or span.name.startswith("invoke_agent "):
        return ""
    return first_text(span.attributes, "ai.telemetry.functionId")


AI_SDK = Convention(
    name="AI SDK",
    kind=_kind,
    switches=(
        Switch(
            "experimental_telemetry: {recordInputs: true, recordOutputs: true}",
            keys=("ai.operationId", "ai.telemetry."),
        ),
        Switch("telemetry: {recordInputs: true, recordOutputs: true} (AI SDK 7)", scopes=("gen_ai",)),
    ),
    sessions=("ai.telemetry.metadata.sessionId", "ai.settings.context.sessionId"),
    users=("ai.telemetry.metadata.userId", "ai.settings.context.userId"),
    agent_of=_agent_of,
    models=("ai.response.model",),
    requested_models=("ai.model.id",),
    input_tokens=("ai.usage.promptTokens",),
    output_tokens=("ai.usage.completionTokens",),
)
