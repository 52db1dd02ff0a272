"""Names the tool calls of a trace, from which the ids of their events are made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from traceweir.streams.intake.spans.tool_calls import ToolCall

_MAX_ID_CHARS = 128


def call_names(calls: Iterable[ToolCall]) -> dict[int, str]:
    """Returns the name of each call by the identity of its object; two calls have no name in common.

    The first call with an id is named after the id, so that the name hardly depends on the spans that are there. Models
    repeat ids: the others are named after the place that tells of them, as the calls without an id.

    Args:
        calls: The calls of all invocations of the trace, in their order.
    """
    names: dict[int, str] = {}
    known: set[str] = set()
    for call in calls:
        is_first = bool(call.call_id) and call.call_id not in known
        known.add(call.call_id)
        names[id(call)] = named_after(call.call_id) if is_first else call.place
    return names


def named_after(call_id: str) -> str:
    """Returns the name of the first call with an id."""
    name = f"call:{call_id}"
    if len(name) > _MAX_ID_CHARS or not name.isprintable():
        return f"call:{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()}"
    return name
