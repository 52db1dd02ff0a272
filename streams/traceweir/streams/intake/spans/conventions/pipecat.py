"""Pipecat: a trace for each conversation, a span for each turn, and messages in the attributes `input` and `output`.

The spans of services that hear and speak by themselves have no messages; what is missing says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from traceweir.streams.intake.spans.api_bodies import answered, requested
from traceweir.streams.intake.spans.attributes import json_in_text, structure
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.genai import OPERATION, operation_of
from traceweir.streams.intake.spans.conventions.seen import SeenInvocation
from traceweir.streams.intake.spans.conventions.source import Rank, Source, as_it_is, attributes
from traceweir.streams.intake.spans.message import SpanMessage
from traceweir.streams.intake.spans.span import Kind, Span

_NUMBER = "turn.number"
_TOOL = "tool.function_name"
_TOOL_RESULT = "llm_tool_result"
"""The name of a span with the result of a call, whose span ended before."""
_RESPONSE = "llm_response"
"""The operation of a service that hears and speaks by itself."""


def _kind(span: Span) -> Kind | None:
    if _is_turn(span):
        return "workflow"
    if _TOOL in span.attributes:
        return "other" if span.name == _TOOL_RESULT else "tool"
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


def _quirks(seen: SeenInvocation) -> Mapping[str, str]:
    if seen.agent or not any(_is_turn(node.span) for node in seen.nodes):
        return {}
    return {
        "agent": "the name of the agent is not in the spans: a pipeline of Pipecat has none; give it one with "
        "additional_span_attributes={'gen_ai.agent.name': 'desk'} of the PipelineTask"
    }


PIPECAT = Convention(
    name="Pipecat",
    kind_keys=(_NUMBER, _TOOL, OPERATION),
    kind=_kind,
    switches=(
        Switch(
            "enable_tracing=True for the pipeline, and use a service for text: the spans of a service that hears and speaks "
            "by itself have no messages",
            keys=(_NUMBER, "conversation.type"),
        ),
    ),
    frameworks=(("pipecat", "pipecat"),),
    sessions=("conversation.id",),
    users=("user_id",),
    is_turn=_is_turn,
    inputs=attributes(requested, Rank.REST, "input"),
    outputs=attributes(_written, Rank.REST, "output", "text_output"),
    tool_ids=("tool.call_id",),
    tool_names=(_TOOL,),
    arguments=(Source("tool.arguments", as_it_is, Rank.BODY),),
    results=attributes(json_in_text, Rank.BODY, "tool.result"),
    failures=("tool.result_status",),
    quirks=_quirks,
)
