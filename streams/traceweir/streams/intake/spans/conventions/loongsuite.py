"""LoongSuite, Alibaba's distribution, and Dify: words for the kinds of spans beside the standard, and keys of its drafts."""

from __future__ import annotations

from typing import Any

from traceweir.streams.intake.spans.api_bodies import answered, requested
from traceweir.streams.intake.spans.attributes import ABSENT, first_text, json_in_text
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.genai import kind_of_operation, operation_of
from traceweir.streams.intake.spans.conventions.source import Rank, Source, as_it_is, attributes
from traceweir.streams.intake.spans.span import Kind, Span
from traceweir.streams.intake.spans.texts_in_values import answer_in, question_in

_KIND_KEYS = ("gen_ai.span.kind", "gen_ai.span_kind_name")
_INPUT = "gen_ai.entity.input"
_OUTPUT = "gen_ai.entity.output"
_KINDS: dict[str, Kind] = {
    "LLM": "llm",
    "GENERATION": "llm",
    "TOOL": "tool",
    "AGENT": "agent",
    "WORKFLOW": "workflow",
    "ENTRY": "chain",
    "CHAIN": "chain",
    "RETRIEVER": "retriever",
    "RERANKER": "retriever",
    "EVALUATOR": "judge",
}


def _kind(span: Span) -> Kind | None:
    word = first_text(span.attributes, *_KIND_KEYS).upper()
    if not word:
        return None
    return kind_of_operation(operation_of(span.attributes)) or _KINDS.get(word, "other")


def _result(span: Span, value: object) -> Any:
    """Returns the result of a tool under the key of OpenInference, here always as JSON."""
    return json_in_text(value) if any(key in span.attributes for key in _KIND_KEYS) else ABSENT


LOONGSUITE = Convention(
    name="LoongSuite",
    kind_keys=_KIND_KEYS,
    kind=_kind,
    sessions=("gen_ai.session.id",),
    users=("gen_ai.user.id",),
    contents=(_OUTPUT,),
    inputs=attributes(requested, Rank.FRAME, _INPUT),
    outputs=attributes(answered, Rank.FRAME, _OUTPUT),
    questions=attributes(question_in, Rank.FRAME, _INPUT),
    answers=attributes(answer_in, Rank.FRAME, _OUTPUT),
    arguments=(Source(_INPUT, as_it_is, Rank.FRAME),),
    results=(
        Source("output.value", _result, Rank.BODY),
        *attributes(json_in_text, Rank.FRAME, _OUTPUT),
    ),
)
