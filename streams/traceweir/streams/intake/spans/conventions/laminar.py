"""Laminar: the kind, the input and the output of a span, and ids and tags, in attributes of its SDK."""

from __future__ import annotations

from traceweir.streams.intake.spans.api_bodies import answered, requested
from traceweir.streams.intake.spans.attributes import first_text, json_in_text
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.source import Rank, Source, as_it_is, attributes
from traceweir.streams.intake.spans.span import Kind, Span
from traceweir.streams.intake.spans.texts_in_values import answer_in, question_in

_KIND = "lmnr.span.type"
_KINDS: dict[str, Kind] = {"LLM": "llm", "TOOL": "tool"}


def _kind(span: Span) -> Kind | None:
    """Returns the kind of a model call or a tool; the others have the type `DEFAULT`, whatever they are."""
    return _KINDS.get(first_text(span.attributes, _KIND))


LAMINAR = Convention(
    name="Laminar",
    kind_keys=(_KIND,),
    kind=_kind,
    sessions=("lmnr.association.properties.session_id",),
    users=("lmnr.association.properties.user_id",),
    tags=("lmnr.association.properties.tags",),
    inputs=attributes(requested, Rank.FRAME, "lmnr.span.input"),
    outputs=attributes(answered, Rank.FRAME, "lmnr.span.output"),
    questions=attributes(question_in, Rank.FRAME, "lmnr.span.input"),
    answers=attributes(answer_in, Rank.FRAME, "lmnr.span.output"),
    arguments=(Source("lmnr.span.input", as_it_is, Rank.FRAME),),
    results=attributes(json_in_text, Rank.FRAME, "lmnr.span.output"),
)
