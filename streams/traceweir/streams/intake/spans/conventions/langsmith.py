"""LangSmith's export of the runs of LangChain and LangGraph."""

from __future__ import annotations

from typing import Any

from traceweir.streams.intake.spans.api_bodies import answered, requested
from traceweir.streams.intake.spans.attributes import ABSENT, first_text, structure
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.genai import operation_of
from traceweir.streams.intake.spans.conventions.source import Rank, Source, attributes
from traceweir.streams.intake.spans.span import Kind, Span
from traceweir.streams.intake.spans.texts_in_values import answer_in, question_in

_KIND = "langsmith.span.kind"
_KINDS: dict[str, Kind] = {"llm": "llm", "tool": "tool", "chain": "chain", "retriever": "retriever"}
_METADATA = "langsmith.metadata."


def _kind(span: Span) -> Kind | None:
    word = first_text(span.attributes, _KIND).lower()
    return _KINDS.get(word, "other") if word and not operation_of(span.attributes) else None


def _agent_of(span: Span) -> str:
    """Returns the name of a whole graph of LangGraph, unless it is the default."""
    there = span.attributes
    is_graph = there.get(f"{_METADATA}ls_integration") == "langgraph"
    is_graph = is_graph and f"{_METADATA}langgraph_node" not in there
    return span.name if is_graph and span.name != "LangGraph" else ""


def _read_question(span: Span, value: Any) -> str:
    return question_in(value) if _KIND in span.attributes else ""


def _read_answer(span: Span, value: Any) -> str:
    return answer_in(value) if _KIND in span.attributes else ""


def _of_tool(span: Span, value: Any) -> Any:
    """Returns a value of a tool; ABSENT for `{}`, which LangSmith writes in place of hidden content.

    A call without arguments has `{}` too, and the model's answer tells that it has none. Results are in an object.
    """
    is_own = _KIND in span.attributes or span.scope == "langsmith"
    return structure(value) if is_own and value != "{}" else ABSENT


LANGSMITH = Convention(
    name="LangSmith",
    apps=("langsmith.trace.session_name", "langsmith.metadata.LANGSMITH_PROJECT"),
    kind_keys=(_KIND,),
    kind=_kind,
    switches=(
        Switch(
            "LANGSMITH_HIDE_INPUTS=false and LANGSMITH_HIDE_OUTPUTS=false", keys=("langsmith.",), scopes=("langsmith",)
        ),
    ),
    sessions=(f"{_METADATA}session_id", f"{_METADATA}thread_id"),
    users=(f"{_METADATA}user_id",),
    tags=("langsmith.span.tags",),
    agents=(f"{_METADATA}lc_agent_name",),
    agent_of={"agent": _agent_of, "chain": _agent_of},
    requested_models=(f"{_METADATA}ls_model_name",),
    usages=(f"{_METADATA}usage_metadata",),
    documents=("gen_ai.completion",),
    inputs=attributes(requested, Rank.BODY, "gen_ai.prompt"),
    outputs=attributes(answered, Rank.BODY, "gen_ai.completion"),
    questions=(Source("gen_ai.prompt", _read_question, Rank.REST),),
    answers=(Source("gen_ai.completion", _read_answer, Rank.REST),),
    arguments=(Source("gen_ai.prompt", _of_tool, Rank.REST),),
    results=(Source("gen_ai.completion", _of_tool, Rank.REST),),
)
