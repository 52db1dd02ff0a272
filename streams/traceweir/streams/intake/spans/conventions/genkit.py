"""Genkit, whose spans have the input and the output of each action as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceweir.streams.intake.spans.api_bodies import answered, requested
from traceweir.streams.intake.spans.attributes import first_text, json_in_text, structure
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.source import Rank, Source, attributes, by_value
from traceweir.streams.intake.spans.span import Attributes, Kind, Span
from traceweir.streams.intake.spans.texts_in_values import answer_in, question_in

_TYPE = "genkit:type"
_SUBTYPE = "genkit:metadata:subtype"
_NAME = "genkit:name"
_INPUT = "genkit:input"
_OUTPUT = "genkit:output"
_KINDS: dict[str, Kind] = {
    "flow": "workflow",
    "agent": "agent",
    "model": "llm",
    "tool": "tool",
    "tool.v2": "tool",
    "retriever": "retriever",
    "reranker": "retriever",
    "evaluator": "judge",
}


def _kind(span: Span) -> Kind | None:
    there = span.attributes
    word = first_text(there, _SUBTYPE) or first_text(there, _TYPE)
    return _KINDS.get(word, "other") if word else None


def _agent_of(span: Span) -> str:
    return first_text(span.attributes, _NAME)


def _answer_metadata(of_span: Attributes) -> Mapping[str, Any]:
    """Returns the model, without the plugin before its name, and the tokens, which are a part of the answer."""
    if first_text(of_span, _SUBTYPE) != "model":
        return {}
    answer = structure(of_span.get(_OUTPUT))
    usage = answer.get("usage") if isinstance(answer, dict) else None
    tokens = {"input": usage.get("inputTokens"), "output": usage.get("outputTokens")} if isinstance(usage, dict) else {}
    return {"model": first_text(of_span, _NAME).partition("/")[2] or first_text(of_span, _NAME), "usage": tokens}


GENKIT = Convention(
    name="Genkit",
    kind_keys=(_TYPE,),
    kind=_kind,
    frameworks=(("genkit", "genkit"),),
    sessions=("genkit:sessionId",),
    agent_of={"agent": _agent_of, "workflow": _agent_of},
    contents=(_OUTPUT,),
    only_json=(_INPUT, _OUTPUT),
    documents=(_OUTPUT,),
    inputs=attributes(requested, Rank.BODY, _INPUT),
    outputs=attributes(answered, Rank.BODY, _OUTPUT),
    answer_metadata=_answer_metadata,
    questions=attributes(question_in, Rank.FRAME, _INPUT),
    answers=attributes(answer_in, Rank.FRAME, _OUTPUT),
    tool_names=(_NAME,),
    arguments=(Source(_INPUT, by_value(json_in_text), Rank.FRAME),),
    results=attributes(json_in_text, Rank.FRAME, _OUTPUT),
    failures=("genkit:state",),
)
