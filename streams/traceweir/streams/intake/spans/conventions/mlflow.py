"""MLflow's tracing, with the values of functions as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceweir.streams.intake.spans.api_bodies import answered, requested
from traceweir.streams.intake.spans.attributes import decoded, first_text, structure
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.genai import operation_of
from traceweir.streams.intake.spans.conventions.source import Rank, Source, as_it_is, attributes
from traceweir.streams.intake.spans.span import Attributes, Kind, Span
from traceweir.streams.intake.spans.texts_in_values import answer_in, question_in

_KIND = "mlflow.spanType"
_USAGE = "mlflow.chat.tokenUsage"
_KINDS: dict[str, Kind] = {
    "LLM": "llm",
    "CHAT_MODEL": "llm",
    "TOOL": "tool",
    "AGENT": "agent",
    "CHAIN": "chain",
    "WORKFLOW": "workflow",
    "RETRIEVER": "retriever",
    "RERANKER": "retriever",
    "EVALUATOR": "judge",
}


def _kind(span: Span) -> Kind | None:
    there = span.attributes
    word = first_text(there, _KIND).upper()
    if word and (word in _KINDS or not operation_of(there)):
        return _KINDS.get(word, "other")
    return None


def _agent_of(span: Span) -> str:
    return span.name if _KIND in span.attributes else ""


def _metadata_of(of_span: Attributes) -> Mapping[str, Any]:
    """Returns `model` and `usage` as the API tells them, or the model that was asked for; empty if they are not there."""
    found: dict[str, Any] = {}
    for key in ("mlflow.spanInputs", "mlflow.spanOutputs"):
        body = structure(of_span[key]) if key in of_span else None
        if isinstance(body, dict):
            found |= {name: body[name] for name in ("model", "usage") if body.get(name)}
    if _USAGE in of_span:
        found.pop("usage", None)
    return found


MLFLOW = Convention(
    name="MLflow",
    kind_keys=(_KIND,),
    kind=_kind,
    clients=(("mlflow", "mlflow"),),
    sessions=("mlflow.trace.session",),
    users=("mlflow.trace.user",),
    agent_of={"agent": _agent_of},
    models=("mlflow.llm.model",),
    usages=(_USAGE,),
    answer_metadata=_metadata_of,
    contents=("mlflow.spanInputs",),
    only_json=("mlflow.spanInputs", "mlflow.spanOutputs"),
    documents=("mlflow.spanOutputs",),
    inputs=attributes(requested, Rank.BODY, "mlflow.spanInputs"),
    outputs=attributes(answered, Rank.BODY, "mlflow.spanOutputs"),
    questions=attributes(question_in, Rank.FRAME, "mlflow.spanInputs"),
    answers=attributes(answer_in, Rank.FRAME, "mlflow.spanOutputs"),
    arguments=(Source("mlflow.spanInputs", as_it_is, Rank.FRAME),),
    results=attributes(decoded, Rank.VALUE, "mlflow.spanOutputs"),
)
