"""LiveKit Agents: the standard, with a trace for each voice session, and a span for each time that the agent speaks.

Versions before 1.8 write no operations of the standard, and the content under keys without `pii`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceweir.streams.intake.spans.attributes import structure, text_of
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.genai import CAPTURE, OPERATION
from traceweir.streams.intake.spans.conventions.seen import SeenInvocation
from traceweir.streams.intake.spans.conventions.source import Rank, Source, as_it_is, attributes
from traceweir.streams.intake.spans.span import Kind, Span

_SCOPE = "livekit-agents"
_TURN = "agent_turn"
_KINDS: dict[str, Kind] = {
    # The voice session, which lasts as many turns as the user speaks.
    "agent_session": "other",
    _TURN: "agent",
    "llm_request": "llm",
    "function_tool": "tool",
}
_NO_NAME = "default_agent"
"""The name of every agent that was given none."""
_QUESTIONS = ("lk.pii.user_input", "lk.user_input")
_ANSWERS = ("lk.pii.response.text", "lk.response.text")


def _kind(span: Span) -> Kind | None:
    return _KINDS.get(span.name) if span.scope == _SCOPE else None


def _is_turn(span: Span) -> bool:
    return span.name == _TURN and span.scope == _SCOPE


def _has_failed(span: Span, _: Any) -> bool:
    return span.attributes.get("lk.function_tool.is_error") is True


def _quirks(seen: SeenInvocation) -> Mapping[str, str]:
    if seen.agent != _NO_NAME or _SCOPE not in seen.scopes:
        return {}
    return {
        "agent": f"the name of the agent is not in the spans: LiveKit calls each agent without an id {_NO_NAME!r}; "
        "give it one, as in Agent(id='desk')"
    }


LIVEKIT = Convention(
    name="LiveKit Agents",
    kind_keys=(OPERATION,),
    kind=_kind,
    kind_of_name=_kind,
    switches=(Switch(f"{CAPTURE}=true", scopes=(_SCOPE,)),),
    frameworks=(("livekit", _SCOPE),),
    sessions=("lk.room_sid",),
    apps=("lk.agent_name",),
    is_turn=_is_turn,
    contents=(*_QUESTIONS, *_ANSWERS),
    questions=attributes(text_of, Rank.VALUE, *_QUESTIONS),
    answers=attributes(text_of, Rank.VALUE, *_ANSWERS),
    tool_ids=("lk.function_tool.id",),
    tool_names=("lk.function_tool.name",),
    arguments=tuple(
        Source(key, as_it_is, Rank.BODY) for key in ("lk.pii.function_tool.arguments", "lk.function_tool.arguments")
    ),
    results=attributes(structure, Rank.BODY, "lk.pii.function_tool.output", "lk.function_tool.output"),
    has_failed=_has_failed,
    quirks=_quirks,
)
