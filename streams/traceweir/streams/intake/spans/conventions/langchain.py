"""LangChain and LangGraph: what they write into the `metadata` of a run, which OpenInference passes on."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.metadata import in_metadata
from traceweir.streams.intake.spans.span import Kind, Span


def _agent_of(span: Span, kind: Kind) -> str:
    """Returns the name of the agent, or of a whole graph of LangGraph, unless it is the default."""
    attributes = span.attributes
    name = in_metadata(attributes, "lc_agent_name")
    if name or kind not in ("agent", "chain") or span.name == "LangGraph":
        return name
    is_graph = in_metadata(attributes, "ls_integration") == "langgraph" and not in_metadata(
        attributes, "langgraph_node"
    )
    return span.name if is_graph else ""


LANGCHAIN = Convention(
    name="LangChain",
    frameworks=(("langsmith", "langchain"), ("langgraph", "langgraph"), ("langchain", "langchain")),
    agent_of=_agent_of,
)
