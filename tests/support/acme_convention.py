"""A convention as the guide to a convention describes it: Acme's tracing has each value as JSON in attributes of its own."""

from traceweir.streams.intake.spans.api_bodies import answered, requested
from traceweir.streams.intake.spans.attributes import first_text, json_in_text
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.source import Rank, Source, as_it_is, attributes
from traceweir.streams.intake.spans.span import Kind, Span
from traceweir.streams.intake.spans.texts_in_values import answer_in, question_in

_KINDS: dict[str, Kind] = {"run": "agent", "completion": "llm", "tool": "tool"}


def _kind(span: Span) -> Kind | None:
    word = first_text(span.attributes, "acme.kind")
    return _KINDS.get(word, "other") if word else None


ACME = Convention(
    name="Acme",
    kind_keys=("acme.kind",),
    kind=_kind,
    switches=(Switch("ACME_RECORD_CONTENT=1", keys=("acme.",)),),
    sessions=("acme.thread",),
    agents=("acme.agent",),
    models=("acme.model",),
    inputs=attributes(requested, Rank.BODY, "acme.input"),
    outputs=attributes(answered, Rank.BODY, "acme.output"),
    questions=attributes(question_in, Rank.FRAME, "acme.input"),
    answers=attributes(answer_in, Rank.FRAME, "acme.output"),
    tool_names=("acme.tool",),
    arguments=(Source("acme.input", as_it_is, Rank.FRAME),),
    results=attributes(json_in_text, Rank.FRAME, "acme.output"),
    contents=("acme.output",),
)
