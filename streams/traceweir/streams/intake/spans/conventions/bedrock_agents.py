"""Bedrock Agents, as OpenInference writes the trace in their answer."""

from __future__ import annotations

import re
from typing import Any

from traceweir.streams.intake.spans.attributes import ABSENT, decoded, first_text, structure
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.source import Rank, Source
from traceweir.streams.intake.spans.span import Attributes, Span

_CALL = "llm.input_messages.0.message.tool_call_id"
_COLLABORATOR = re.compile(r"agent_collaborator\[(.+)\]")
_PARSED = ("number", "integer", "boolean", "array")
"""The types of parameters whose value, which is a text, is JSON."""


def _is_action(of_span: Attributes) -> bool:
    """Returns whether a span is the call of an action, before whose name the model puts that of its group."""
    return first_text(of_span, _CALL) == "default"


def _parameters(_: Span, value: object) -> Any:
    """Returns the arguments of an action, a list of parameters each with its type and its value."""
    listed = structure(value)
    if not isinstance(listed, list) or not all(isinstance(each, dict) and "name" in each for each in listed):
        return ABSENT
    return {
        str(each["name"]): decoded(each.get("value")) if each.get("type") in _PARSED else each.get("value")
        for each in listed
    }


def _collaborator(span: Span) -> str:
    found = _COLLABORATOR.fullmatch(span.name)
    return found[1] if found else ""


BEDROCK_AGENTS = Convention(
    name="Bedrock Agents",
    agent_of={"agent": _collaborator},
    is_server_call=_is_action,
    arguments=(Source("tool.parameters", _parameters, Rank.VALUE),),
)
