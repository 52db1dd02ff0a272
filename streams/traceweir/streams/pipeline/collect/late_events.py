"""Decides which events a publication of a trace adds to those of the publication before, and which of them it replaces.

Late spans can change what was published: a call gets its result, a question that was missing is there, two invocations
become one. Nothing that was published can be taken back; so a changed event is published again under another id, and
`replaces` names the event that it replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

Event = dict[str, Any]
IsPublished = Callable[[str], bool]
"""Returns whether an event with this id was published."""

_DIMENSIONS = frozenset(
    {
        "app_name",
        "agent_name",
        "agent_version",
        "environment",
        "model",
        "labels",
        "trace_context",
        "sampling_probability",
        "user_id",
    }
)
"""The fields that all events of an invocation have in common. The last known value counts, which the last event tells."""
_ENVELOPE = ("session_id", "invocation_id", "occurred_at")
"""The fields of a withdrawn event that the event has which withdraws it."""
_WITHDRAWING = "invocation.started"
"""The type of an event that withdraws others: each further field of this type is optional."""
MAX_WITHDRAWN = 1_000
"""Number of events that one event withdraws at most."""
MAX_NAME_BYTES = 32_768
"""Bytes of the ids that one event withdraws, unless a single id has more: such an event fits every topic."""


def late_events(before: Sequence[Event], after: Sequence[Event], is_published: IsPublished) -> list[Event]:
    """Returns the events that turn the result of one reading of a trace into that of the next.

    A changed event has the id of its former version with `~2`, `~3` and so on. An event that no longer exists, or that
    belongs to another session now, is withdrawn by an event in its session that has no content and replaces itself too.
    The end of a session stays as it is.

    Args:
        before: The events of the spans that the last publication had.
        after: The events of all spans.
        is_published: What all publications before have published.
    """
    known = {
        event["event_id"]: event
        for event in before
        if event["type"] != "session.ended" and is_published(event["event_id"])
    }
    found: list[Event] = []
    withdrawn: dict[str, list[Event]] = {}
    for event in after:
        name = event["event_id"]
        former = known.pop(name, None)
        if former is not None and former["session_id"] != event["session_id"]:
            withdrawn.setdefault(former["session_id"], []).append(former)
            found.append(_next(event, [], is_published))
        elif former is not None:
            if _differs(former, event):
                found.append(_next(event, [_last(name, is_published)], is_published))
        elif not is_published(name):
            found.append(event)
        elif event["type"] != "session.ended":
            found.append(_next(event, [], is_published))
    for event in known.values():
        withdrawn.setdefault(event["session_id"], []).append(event)
    for events in withdrawn.values():
        for first, names in _together(events, is_published):
            found.append(_withdrawal(first, f"{names[0]}~withdrawn", names))
    return found


def _together(events: Sequence[Event], is_published: IsPublished) -> Iterator[tuple[Event, list[str]]]:
    """Yields the names of the events that one event withdraws, after the first of these events."""
    first = events[0]
    names = list[str]()
    size = 0
    for event in events:
        name = _last(event["event_id"], is_published)
        added = len(name.encode())
        if names and (len(names) == MAX_WITHDRAWN or size + added > MAX_NAME_BYTES):
            yield first, names
            first = event
            names = []
            size = 0
        names.append(name)
        size += added
    yield first, names


def _differs(former: Event, event: Event) -> bool:
    """Returns whether an event must be published again: it says something else, or it must say less."""
    if any(key in former and key not in event for key in _DIMENSIONS):
        return True
    if event["type"] == "invocation.completed":
        return former != event
    common = _DIMENSIONS - {"model"} if event["type"] == "model.called" else _DIMENSIONS
    return _without(common, former) != _without(common, event)


def _without(fields: frozenset[str], event: Event) -> Event:
    return {name: value for name, value in event.items() if name not in fields}


def _withdrawal(first: Event, own: str, names: Sequence[str]) -> Event:
    """Returns the event that withdraws others, of which `first` is one.

    It has the content of none of them: with the content of a large event and many ids it would not fit a record.
    """
    envelope = {name: first[name] for name in _ENVELOPE if name in first}
    return {"event_id": own, **envelope, "type": _WITHDRAWING, "replaces": [*names, own]}


def _next(event: Event, replaces: list[str], is_published: IsPublished) -> Event:
    """Returns an event as the next version of its id."""
    name = f"{event['event_id']}~{_versions(event['event_id'], is_published) + 1}"
    return {**event, "event_id": name, **({"replaces": replaces} if replaces else {})}


def _last(name: str, is_published: IsPublished) -> str:
    number = _versions(name, is_published)
    return name if number == 1 else f"{name}~{number}"


def _versions(name: str, is_published: IsPublished) -> int:
    """Returns the number of published versions of an event of which at least the first is published."""
    number = 1
    while is_published(f"{name}~{number + 1}"):
        number += 1
    return number
