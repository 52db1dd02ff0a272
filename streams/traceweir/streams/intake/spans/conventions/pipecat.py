"""Pipecat: a trace for each conversation, a span for each turn, and messages in the attributes `input` and `output`.

A service that hears and speaks by itself writes what it heard, what it was asked, a call, its result and what it said on
spans of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from traceweir.streams.intake.spans.api_bodies import answered, requested
from traceweir.streams.intake.spans.attributes import ABSENT, json_in_text, structure, text_of
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.genai import OPERATION, operation_of
from traceweir.streams.intake.spans.conventions.seen import SeenInvocation
from traceweir.streams.intake.spans.conventions.source import Rank, Source, as_it_is, attributes
from traceweir.streams.intake.spans.message import RequestedCall, SpanMessage
from traceweir.streams.intake.spans.span import Kind, Span
from traceweir.streams.intake.spans.texts_in_values import newest_user_text

_NUMBER = "turn.number"
_TOOL = "tool.function_name"
_TOOL_RESULT = "llm_tool_result"
"""The name of a span with the result of a call, whose span ended before."""
_RESPONSE = "llm_response"
"""The operation of a service that hears and speaks by itself."""
_REQUEST = "llm_request"
"""The name of a span with the messages of the conversation, as such a service reads them."""
_TRANSCRIPT = "transcript"
_CALLED = "function_calls.all_names"
"""The names of the calls that such a service asks for, with commas between them."""
_NO_JSON = "Invalid JSON: "
"""What stands before a result that is a text."""


def _kind(span: Span) -> Kind | None:
    if _is_turn(span):
        return "workflow"
    if _TOOL in span.attributes:
        return "tool"
    return "llm" if operation_of(span.attributes) == _RESPONSE else None


def _is_turn(span: Span) -> bool:
    return span.name == "turn" and _NUMBER in span.attributes


def _written(value: object) -> list[SpanMessage]:
    """Returns what a model wrote, as text; others use the same key for the answer in the form of its API."""
    parsed = structure(value)
    is_message = isinstance(parsed, dict) and not {"role", "choices"}.isdisjoint(parsed)
    if is_message or (isinstance(parsed, list) and all(isinstance(each, dict) and "role" in each for each in parsed)):
        return answered(parsed)
    return [SpanMessage("assistant", [value])] if isinstance(value, str) and value else []


def _asked(span: Span, value: object) -> list[SpanMessage]:
    """Returns the text of a service that hears and speaks by itself, with the calls that it asks for."""
    text = span.attributes.get("output")
    message = SpanMessage("assistant", [text] if isinstance(text, str) and text else [])
    message.calls = [RequestedCall("", name, ABSENT) for name in text_of(value).split(",") if name]
    return [message]


def _heard(spans: Sequence[Span]) -> str:
    """Returns what services have understood of the user, else the newest message of the user that one has read."""
    heard = [text.strip() for span in spans if (text := _transcript(span))]
    if heard:
        return " ".join(heard)
    read = (requested(span.attributes.get("input")) for span in spans if span.name == _REQUEST)
    return next((text for messages in read if (text := newest_user_text(messages))), "")


def _transcript(span: Span) -> str:
    there = span.attributes
    if there.get("is_final") is False or there.get("transcript.is_input") is False or operation_of(there) == "tts":
        return ""
    return text_of(there.get(_TRANSCRIPT))


def _is_result(span: Span) -> bool:
    return span.name == _TOOL_RESULT and _TOOL in span.attributes


def _result(span: Span, value: Any) -> Any:
    if isinstance(value, str) and span.attributes.get("tool.result_status") == "parse_error":
        return value.removeprefix(_NO_JSON)
    return json_in_text(value)


def _quirks(seen: SeenInvocation) -> Mapping[str, str]:
    if not any(_is_turn(node.span) for node in seen.nodes):
        return {}
    parts = {}
    if not seen.agent:
        parts["agent"] = (
            "the name of the agent is not in the spans: a pipeline of Pipecat has none; give it one with "
            "additional_span_attributes={'gen_ai.agent.name': 'desk'} of the PipelineTask"
        )
    counts = (node.span.attributes.get("tool.calls_count") for node in seen.nodes)
    if any(isinstance(count, int) and count > 1 for count in counts):
        parts["tools"] = (
            "some tool calls are not in the spans: of the calls that the service asks for at once, Pipecat writes the first"
        )
    return parts


PIPECAT = Convention(
    name="Pipecat",
    kind_keys=(_NUMBER, _TOOL, OPERATION),
    kind=_kind,
    switches=(
        Switch(
            "enable_tracing=True for the pipeline; a service that hears and speaks by itself must also transcribe both",
            keys=(_NUMBER, "conversation.type"),
        ),
    ),
    frameworks=(("pipecat", "pipecat"),),
    sessions=("conversation.id",),
    users=("user_id",),
    is_turn=_is_turn,
    inputs=attributes(requested, Rank.REST, "input"),
    outputs=(Source(_CALLED, _asked, Rank.REST), *attributes(_written, Rank.REST, "output", "text_output")),
    input_tokens=("tokens.prompt",),
    output_tokens=("tokens.completion",),
    heard=_heard,
    tool_ids=("tool.call_id",),
    tool_names=(_TOOL,),
    arguments=(Source("tool.arguments", as_it_is, Rank.BODY),),
    results=(Source("tool.result", _result, Rank.BODY),),
    is_late_result=_is_result,
    failures=("tool.result_status",),
    quirks=_quirks,
)
