"""Langfuse's own observations."""

from __future__ import annotations

from typing import Any

from traceweir.streams.intake.spans.api_bodies import answered, requested
from traceweir.streams.intake.spans.attributes import first_text, json_in_text
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.genai import operation_of
from traceweir.streams.intake.spans.conventions.source import Rank, Source, as_it_is, attributes
from traceweir.streams.intake.spans.message import SpanMessage, is_hidden, said
from traceweir.streams.intake.spans.span import Kind, Span
from traceweir.streams.intake.spans.texts_in_values import answer_in, question_in

_KIND = "langfuse.observation.type"
_OUTPUT = "langfuse.observation.output"
_KINDS: dict[str, Kind] = {
    "generation": "llm",
    "tool": "tool",
    "agent": "agent",
    "chain": "chain",
    "span": "chain",
    "retriever": "retriever",
    "evaluator": "judge",
}


def _kind(span: Span) -> Kind | None:
    word = first_text(span.attributes, _KIND).lower()
    return _KINDS.get(word, "other") if word and not operation_of(span.attributes) else None


def _agent_of(span: Span) -> str:
    return span.name if _KIND in span.attributes else ""


def _read_output(value: Any) -> list[SpanMessage]:
    return answered(value) or ([said("assistant", value)] if isinstance(value, str) else [])


def _read_text(span: Span, _: object) -> str:
    """Returns the text of an agent, which can be JSON."""
    text = first_text(span.attributes, _OUTPUT)
    return "" if is_hidden(text) else text


LANGFUSE = Convention(
    name="Langfuse",
    kind_keys=(_KIND,),
    kind=_kind,
    switches=(Switch("LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED=true", keys=("langfuse.observation.",)),),
    sessions=("langfuse.session.id",),
    users=("langfuse.user.id",),
    environments=("langfuse.environment",),
    tags=("langfuse.trace.tags",),
    agent_of={"agent": _agent_of},
    requested_models=("langfuse.observation.model.name",),
    usages=("langfuse.observation.usage_details",),
    contents=(_OUTPUT,),
    documents=(_OUTPUT,),
    inputs=attributes(requested, Rank.FRAME, "langfuse.observation.input"),
    outputs=attributes(_read_output, Rank.FRAME, _OUTPUT),
    questions=attributes(question_in, Rank.FRAME, "langfuse.observation.input"),
    answers=attributes(answer_in, Rank.FRAME, _OUTPUT),
    agent_texts=(Source(_OUTPUT, _read_text, Rank.FRAME),),
    arguments=(Source("langfuse.observation.input", as_it_is, Rank.FRAME),),
    results=attributes(json_in_text, Rank.FRAME, _OUTPUT),
    failures=("langfuse.observation.level",),
    failure_messages=("langfuse.observation.status_message",),
)
