"""OpenInference, the convention of Arize, whose instrumentations exist for most frameworks."""

from __future__ import annotations

from traceweir.streams.intake.spans.attributes import first_text
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.smolagents import CLASSES
from traceweir.streams.intake.spans.span import Kind, Span

_KIND = "openinference.span.kind"
_KINDS: dict[str, Kind] = {
    "LLM": "llm",
    "TOOL": "tool",
    "AGENT": "agent",
    "CHAIN": "chain",
    "RETRIEVER": "retriever",
    "RERANKER": "retriever",
    "EVALUATOR": "judge",
}


def _kind(span: Span) -> Kind | None:
    attributes = span.attributes
    word = first_text(attributes, _KIND).upper() if _KIND in attributes else ""
    if word == "AGENT" and "tool.name" in attributes and "agent.name" not in attributes:
        return "tool"  # OpenInference's LangChain calls each run an AGENT whose name has `agent` in it
    return _KINDS.get(word, "other") if word else None


def _agent_of(span: Span, kind: Kind) -> str:
    is_run = kind == "agent" and _KIND in span.attributes and span.name.endswith(".run")
    name = span.name.removesuffix(".run") if is_run else ""
    return "" if name in CLASSES else name


OPENINFERENCE = Convention(
    name="OpenInference",
    kind=_kind,
    switches=(Switch("OPENINFERENCE_HIDE_INPUTS=false and OPENINFERENCE_HIDE_OUTPUTS=false", keys=(_KIND,)),),
    tags=("tag.tags",),
    agents=("agent.name", "graph.node.id"),
    agent_of=_agent_of,
    models=("llm.model_name",),
    input_tokens=("llm.token_count.prompt",),
    output_tokens=("llm.token_count.completion",),
    contents=("input.value", "output.value"),
    documents=("output.value",),
    spread_documents=("retrieval.documents.", "reranker.output_documents."),
)
