"""GenAI: the semantic conventions of OpenTelemetry for generative AI, the current ones and the former ones."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from traceweir.streams.intake.spans.api_bodies import answered, requested
from traceweir.streams.intake.spans.attributes import ABSENT, decoded, first_text, structure, text_of
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.source import (
    Identified,
    Rank,
    Source,
    SourcePlace,
    as_it_is,
    attributes,
    field_of_event,
)
from traceweir.streams.intake.spans.message import Role, SpanMessage
from traceweir.streams.intake.spans.messages import read_message, read_messages
from traceweir.streams.intake.spans.span import Attributes, Kind, Span, SpanEvent
from traceweir.streams.intake.spans.span_events import DETAILS, event_fields, event_name

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable by which most instrumentations of the standard write content."""
OPERATION = "gen_ai.operation.name"
OPERATION_NAMES = ("execute_tool ", "invoke_agent")
"""The beginnings of the names that the standard gives to spans."""
_OPERATIONS: dict[str, Kind] = {
    "chat": "llm",
    "generate_content": "llm",
    "text_completion": "llm",
    # Azure's clients.
    "responses": "llm",
    # Semantic Kernel, and the first versions of Microsoft's Agent Framework.
    "chat.completions": "llm",
    "chat.streaming_completions": "llm",
    "text.completions": "llm",
    "text.streaming_completions": "llm",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "invoke_workflow": "workflow",
    "retrieval": "retriever",
    "chain": "chain",
    "evaluate": "judge",
}
CHOICES = {"gen_ai.choice", "gen_ai.assistant.choice"}
_INPUT_EVENTS = {
    "gen_ai.system.message",
    "gen_ai.user.message",
    "gen_ai.assistant.message",
    "gen_ai.tool.message",
}
_MODELS = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "model_name")
_MICROSOFT = "microsoft.extensions.ai*"
_USAGES = ("gen_ai.usage.", "llm.token_count.", "llm.usage.")


def operation_of(of_span: Attributes) -> str:
    """Returns the operation of a span; empty if it tells none. It says more than the word of most other conventions."""
    return first_text(of_span, OPERATION)


def kind_of_operation(operation: str) -> Kind | None:
    """Returns the kind of the spans of an operation; None if it is none of the standard's."""
    found = _OPERATIONS.get(operation) or _OPERATIONS.get(operation.lower())
    # Strands: a swarm, a graph.
    if found is None and operation.startswith("invoke_"):
        found = "workflow"
    return found


def _kind(span: Span) -> Kind | None:
    operation = operation_of(span.attributes)
    return (kind_of_operation(operation) or "other") if operation else None


def _kind_of_name(span: Span) -> Kind | None:
    name = span.name
    if name.startswith("execute_tool "):
        return "tool"
    if name.startswith("invoke_agent"):
        return "agent"
    usage = any(key.startswith(_USAGES) for key in span.attributes)
    return "llm" if usage and first_text(span.attributes, *_MODELS) else None


def _agent_of(span: Span) -> str:
    name = span.name.removeprefix("invoke_agent ")
    return name if name != span.name else ""


def _choices(value: Any) -> list[SpanMessage]:
    """Returns the messages that a model wrote; the pieces of a stream, which end without a reason, become one message.

    ADK writes the pieces, and then the whole text again.
    """
    if value is None:
        return []
    value = structure(value)
    items = value if isinstance(value, list) else []
    if len(items) < 2 or any(not isinstance(item, dict) or item.get("finish_reason") != "" for item in items[:-1]):
        return read_messages(value, "assistant")
    *pieces, last = read_messages(items, "assistant")
    text = "".join(part for piece in pieces for part in piece.texts)
    whole = "".join(last.texts)
    last.texts = [whole if whole.startswith(text) else text + whole]
    last.calls = [call for piece in pieces for call in piece.calls if call not in last.calls] + last.calls
    return [last]


def _event_message(event: SpanEvent) -> SpanMessage:
    name = event_name(event)
    role: Role = "assistant" if name in CHOICES else "user"
    return read_message({**event_fields(event), "event.name": name}, role)


def _of_events(span: Span, names: Set[str]) -> list[SpanMessage]:
    """Returns the messages in the events of these names.

    If the user's text is there, content is not hidden, and a call without arguments has none: botocore's
    instrumentation leaves out an empty object.
    """
    messages = [_event_message(event) for event in span.events if event_name(event) in names]
    if any(call.args is ABSENT for message in messages for call in message.calls):
        asked = (_event_message(event) for event in span.events if event_name(event) == "gen_ai.user.message")
        if any(message.has_content for message in asked):
            for message in messages:
                message.calls = [
                    call._replace(args={}) if call.args is ABSENT and call.name else call for call in message.calls
                ]
    return messages


def _read_inputs(span: Span, _: object) -> list[SpanMessage]:
    return _of_events(span, _INPUT_EVENTS)


def _read_choices(span: Span, _: object) -> list[SpanMessage]:
    return _of_events(span, CHOICES)


def _field_of(span: Span, event: SpanEvent, key: str) -> Any:
    value = event_fields(event).get(key, ABSENT)
    return ABSENT if value is None and span.cut_texts else value


def _arguments(span: Span, event: SpanEvent) -> Identified:
    return Identified(_field_of(span, event, "content"), text_of(event_fields(event).get("id")))


def _result(span: Span, event: SpanEvent) -> Any:
    return structure(_field_of(span, event, "message"))


GENAI = Convention(
    name="GenAI",
    kind_keys=(OPERATION,),
    kind=_kind,
    kind_of_name=_kind_of_name,
    switches=(
        Switch(
            f"{CAPTURE}=SPAN_AND_EVENT (instrumentations before util-genai 1.0: true)",
            # Those of OpenTelemetry in all languages, and spans of unknown origin.
            scopes=(
                "",
                "opentelemetry*",
                "io.opentelemetry*",
                "@opentelemetry/*",
                "experimental.microsoft.*",
                _MICROSOFT,
            ),
        ),
    ),
    shared_sessions=("session.id", "gen_ai.conversation.id"),
    users=("user.id", "enduser.id"),
    # The thread of an operating system.
    other_ids=("thread.id",),
    # Clients of models have no convention of their own.
    clients=(("openai", "openai"), ("anthropic", "anthropic")),
    agents=("gen_ai.agent.name",),
    agent_of={"agent": _agent_of},
    models=("gen_ai.response.model",),
    requested_models=("gen_ai.request.model",),
    providers=("gen_ai.provider.name", "gen_ai.system"),
    # Anthropic's `is_error` and Bedrock's `status`.
    flagging_providers=("anthropic", "aws.bedrock", "aws_bedrock", "bedrock", "aws"),
    input_tokens=("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    output_tokens=("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    contents=("gen_ai.input.messages", "gen_ai.output.messages"),
    only_json=("gen_ai.input.messages", "gen_ai.output.messages"),
    documents=("gen_ai.retrieval.documents",),
    log_events=("gen_ai.",),
    finishes=("gen_ai.response.finish_reasons", "gen_ai.response.finish_reason"),
    inputs=(
        *attributes(read_messages, Rank.VALUE, "gen_ai.input.messages"),
        field_of_event(DETAILS, "gen_ai.input.messages", read_messages)._replace(rank=Rank.VALUE),
        Source("gen_ai.", _read_inputs, Rank.EVENTS, SourcePlace.SPAN),
        field_of_event("gen_ai.content.prompt", "gen_ai.prompt", requested),
        *attributes(requested, Rank.REST, "gen_ai.request.messages"),
    ),
    outputs=(
        *attributes(_choices, Rank.VALUE, "gen_ai.output.messages"),
        field_of_event(DETAILS, "gen_ai.output.messages", _choices)._replace(rank=Rank.VALUE),
        Source("gen_ai.", _read_choices, Rank.EVENTS, SourcePlace.SPAN),
        field_of_event("gen_ai.content.completion", "gen_ai.completion", answered),
    ),
    tool_ids=("gen_ai.tool.call.id",),
    tool_names=("gen_ai.tool.name",),
    arguments=(
        Source("gen_ai.tool.call.arguments", as_it_is, Rank.VALUE),
        # Before version 1.38.
        Source("gen_ai.tool.arguments", as_it_is, Rank.REST),
        Source("gen_ai.tool.message", _arguments, Rank.REST, SourcePlace.EVENT),
    ),
    results=(
        *attributes(decoded, Rank.VALUE, "gen_ai.tool.call.result"),
        *attributes(decoded, Rank.REST, "gen_ai.tool.result", "gen_ai.event.content"),
        Source("gen_ai.choice", _result, Rank.REST, SourcePlace.EVENT),
    ),
    failures=("gen_ai.tool.status", "gen_ai.tool.call.status"),
    no_runs=("execute_tools",),
)
