"""Instructor, which makes models answer in a schema, as OpenInference writes it."""

from __future__ import annotations

from typing import Any

from traceweir.streams.intake.spans.attributes import text_of
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.source import Rank, Source
from traceweir.streams.intake.spans.message import SpanMessage, is_hidden
from traceweir.streams.intake.spans.span import Kind, Span

_SCHEMA = "instructor.response_model"


def _kind(span: Span) -> Kind | None:
    """Returns that a span is around the call of a model; it is that call where the client has no span of its own."""
    return "llm" if "llm.input_messages.0.message.role" in span.attributes else None


def _read_output(span: Span, _: Any) -> list[SpanMessage]:
    text = text_of(span.attributes["output.value"]) if _SCHEMA in span.attributes else ""
    return [SpanMessage("assistant", [text])] if text and not is_hidden(text) else []


INSTRUCTOR = Convention(
    name="Instructor",
    kind_keys=(_SCHEMA,),
    kind=_kind,
    frameworks=((".instructor", "instructor"),),
    outputs=(Source("output.value", _read_output, Rank.BODY),),
)
