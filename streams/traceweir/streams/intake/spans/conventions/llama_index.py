"""LlamaIndex, as OpenInference writes it."""

from __future__ import annotations

import re
from typing import Any

from traceweir.streams.intake.spans.attributes import text_of
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.source import Rank, Source
from traceweir.streams.intake.spans.message import SpanMessage
from traceweir.streams.intake.spans.span import Kind, Span

_KIND = "openinference.span.kind"
_EVENT_AGENT = re.compile(r"""current_agent_name='([^'"\\]{1,256})'\)"\}\Z""")
"""The end of a step's input in a workflow: Python's text of the event, whose last field is the agent."""


def _kind(span: Span) -> Kind | None:
    """Returns that the preparation of a call is no call of a model."""
    is_preparation = "._prepare_" in span.name and str(span.attributes[_KIND]).upper() == "LLM"
    return "other" if is_preparation else None


def _agent_of(span: Span) -> str:
    step = text_of(span.attributes.get("input.value"))
    found = _EVENT_AGENT.search(step, max(len(step) - 512, 0))
    return found[1] if found else ""


def _read_output(span: Span, value: Any) -> list[SpanMessage]:
    is_text = isinstance(value, str) and value.startswith("assistant: ") and "llama_index" in span.scope
    return [SpanMessage("assistant", [value.removeprefix("assistant: ")])] if is_text else []


LLAMA_INDEX = Convention(
    name="LlamaIndex",
    kind_keys=(_KIND,),
    kind=_kind,
    frameworks=(("llama_index", "llama-index"), ("llamaindex", "llama-index")),
    agent_of={"chain": _agent_of},
    outputs=(Source("output.value", _read_output, Rank.FRAME),),
)
