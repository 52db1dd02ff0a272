"""Spring AI, which writes the calls of tools to its spans, and prompts and answers to its log alone."""

from __future__ import annotations

from traceweir.streams.intake.spans.attributes import first_text, json_in_text
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.genai import kind_of_operation, operation_of
from traceweir.streams.intake.spans.conventions.source import Rank, Source, as_it_is, attributes
from traceweir.streams.intake.spans.span import Attributes, Kind, Span

_SESSION = "spring.ai.chat.client.conversation.id"
_NO_SESSION = "default"
"""The conversation of clients that name none; many users share it."""
_KIND = "spring.ai.kind"
_KINDS: dict[str, Kind] = {"chat_client": "workflow", "tool_call": "tool"}


def _kind(span: Span) -> Kind | None:
    there = span.attributes
    operation = operation_of(there)
    # `framework` is no operation of the standard.
    if not operation or kind_of_operation(operation):
        return None
    return _KINDS.get(first_text(there, _KIND), "other")


def _no_session(of_span: Attributes) -> str:
    return _SESSION if first_text(of_span, _SESSION) == _NO_SESSION else ""


SPRING_AI = Convention(
    name="Spring AI",
    kind_keys=(_KIND,),
    kind=_kind,
    switches=(
        Switch(
            "spring.ai.tools.observations.include-content=true; Spring AI writes prompts and answers to its log alone",
            keys=("spring.ai.",),
        ),
    ),
    sessions=(_SESSION,),
    no_session=_no_session,
    tool_names=("spring.ai.tool.definition.name",),
    arguments=(Source("spring.ai.tool.call.arguments", as_it_is, Rank.VALUE),),
    results=attributes(json_in_text, Rank.FRAME, "spring.ai.tool.call.result"),
)
