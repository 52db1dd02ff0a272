"""Defines Source: a place of a span where a convention writes a value, and how it is read there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from traceweir.streams.intake.spans.span import Span
from traceweir.streams.intake.spans.span_events import event_field, named_events


class Rank(IntEnum):
    """How much a source says. Those of a lower rank are asked first, whatever their conventions."""

    VALUE = 0
    """The value itself, such as messages each with its role, or the arguments of a call."""
    BODY = 1
    """What holds the value, such as the request to a model in the form of its API."""
    EVENTS = 2
    """Events of the span or log records."""
    FRAME = 3
    """The input or the output of a function, whatever it is."""
    REST = 4
    """A key that says little of its value, or that other conventions use for something else."""


class SourcePlace(IntEnum):
    """Where in a span a source is."""

    ATTRIBUTE = 0
    """The attribute of the key; `read` gets its value."""
    SPREAD = 1
    """The attributes whose keys begin with the key; `read` gets all spread attributes of the span."""
    EVENT = 2
    """Each event of the span with the key as its name; `read` gets the event."""
    SPAN = 3
    """The events of the span together, if it has some; `read` gets None."""


_SPREAD = SourcePlace.SPREAD
_SPAN = SourcePlace.SPAN


class Source(NamedTuple):
    """A place where a convention writes a value. `read` gets the span and what is there."""

    key: str
    read: Callable[[Span, Any], Any]
    rank: Rank
    place: SourcePlace = SourcePlace.ATTRIBUTE


class Identified(NamedTuple):
    """The arguments of a call with the id of the call."""

    value: Any
    """The arguments, or ABSENT."""
    call_id: str
    """The id; empty if it is not there."""


def by_value(read: Callable[[Any], Any]) -> Callable[[Span, Any], Any]:
    """Returns the reader of a source that needs the value alone."""
    return lambda _, value: read(value)


def as_it_is(_: Span, value: Any) -> Any:
    """Returns the value: the reader of a source that writes it without a frame."""
    return value


def attributes(read: Callable[[Any], Any], rank: Rank, *keys: str) -> tuple[Source, ...]:
    """Returns the sources of attributes that are read alike, from their value alone."""
    return tuple(Source(key, by_value(read), rank) for key in keys)


def field_of_event(name: str, key: str, read: Callable[[Any], Any]) -> Source:
    """Returns the source of a field of the events of this name: an attribute of the event, or a part of its body."""
    return Source(name, lambda _, event: read(event_field(event, key)), Rank.EVENTS, SourcePlace.EVENT)


def ranked(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Returns sources in the order in which they are asked; within a rank they keep their order."""
    return tuple(sorted(sources, key=lambda source: source.rank))


def no_spread(_: Span) -> Mapping[str, Any]:
    """Returns no attributes: no source of these values is spread."""
    return {}


def read_all(
    span: Span, sources: Iterable[Source], spread_of: Callable[[Span], Mapping[str, Any]] = no_spread
) -> Iterator[Any]:
    """Yields what is read from each source that is there.

    Args:
        span: The span.
        sources: The sources, in the order in which they are asked.
        spread_of: Returns the attributes of the span over which values are spread.
    """
    there = span.attributes
    events = span.events
    spread: Mapping[str, Any] | None = None
    for key, read, _, place in sources:
        # As of most sources: an attribute.
        if not place:
            if key in there and (value := there[key]) is not None:
                yield read(span, value)
        elif place is _SPREAD:
            spread = spread_of(span) if spread is None else spread
            if spread:
                yield read(span, spread)
        elif events:
            if place is _SPAN:
                yield read(span, None)
            else:
                for event in named_events(span, key):
                    yield read(span, event)
