"""LangChain and LangGraph: what they write into the `metadata` of a run, which OpenInference passes on."""

from __future__ import annotations

from typing import get_args

from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.metadata import in_metadata
from traceweir.streams.intake.spans.span import Kind, Span


def _agent_of(span: Span) -> str:
    return in_metadata(span.attributes, "lc_agent_name")


def _agent_or_graph(span: Span) -> str:
    """Returns the name of the agent, or of a whole graph of LangGraph, unless it is the default."""
    there = span.attributes
    name = _agent_of(span)
    if name or span.name == "LangGraph":
        return name
    is_graph = in_metadata(there, "ls_integration") == "langgraph" and not in_metadata(there, "langgraph_node")
    return span.name if is_graph else ""


LANGCHAIN = Convention(
    name="LangChain",
    frameworks=(("langsmith", "langchain"), ("langgraph", "langgraph"), ("langchain", "langchain")),
    agent_of={**dict.fromkeys(get_args(Kind), _agent_of), "agent": _agent_or_graph, "chain": _agent_or_graph},
)
