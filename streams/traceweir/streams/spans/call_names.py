"""Names the tool calls of a trace, so that late spans change no name under which a call was published."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from traceweir.streams.spans.tool_calls import ToolCall

_MAX_ID_CHARS = 128

IsPublished = Callable[[str], bool]
"""Returns whether an earlier reading of the trace has had an event with this id, or this mark."""


def nothing_published(_: str) -> bool:
    """Returns False: the trace was not read before."""
    return False


@dataclass(slots=True)
class CallNames:
    """The name of each tool call of a trace, from which the ids of its events are made."""

    names: dict[int, str] = field(default_factory=dict)
    """The names by the identity of the call's object. Two calls have no name in common."""
    marks: list[str] = field(default_factory=list)
    """Texts by which a later reading recognises the calls that are named after their id: models repeat ids."""

    @classmethod
    def of(cls, calls: Sequence[ToolCall], event_id: Callable[[str], str], is_published: IsPublished) -> CallNames:
        """Names calls.

        A call keeps the name that it has already. Otherwise the first call with an id is named after the id, so that the
        name does not depend on the spans that are there. The others are named after the place that tells of them.

        Args:
            calls: The calls of all invocations of the trace, in their order.
            event_id: Returns the id of an event from the part that follows the trace.
            is_published: What earlier readings had.
        """
        found = cls()
        by_id: dict[str, list[ToolCall]] = {}
        for call in calls:
            known = next((each for each in call.places if is_published(event_id(f"{each}:called"))), None)
            if known is not None:
                found.names[id(call)] = known
            elif call.call_id:
                by_id.setdefault(call.call_id, []).append(call)
            else:
                found.names[id(call)] = call.places[0]
        for call_id, same in by_id.items():
            name = named_after(call_id)
            first = same[0]
            if len(same) > 1:
                marked = (each for each in same if any(is_published(f"{name}@{place}") for place in each.places))
                first = next(marked, first)
            for call in same:
                found.names[id(call)] = name if call is first else call.places[0]
            found.marks += (f"{name}@{place}" for place in first.places)
        return found


def named_after(call_id: str) -> str:
    """Returns the name of the first call with an id."""
    name = f"call:{call_id}"
    if len(name) > _MAX_ID_CHARS or not name.isprintable():
        return f"call:{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()}"
    return name
