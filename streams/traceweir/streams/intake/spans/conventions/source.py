"""Defines Source: a place of a span where a convention writes a value, and how it is read there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from traceweir.streams.intake.spans.key_sets import KeyTable
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


_ATTRIBUTE = SourcePlace.ATTRIBUTE
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


def spread_beginnings(sources: Iterable[Source]) -> tuple[str, ...]:
    """Returns the beginnings of the keys over which values of these sources are spread."""
    return tuple(source.key for source in sources if source.place is _SPREAD)


class SourceTable:
    """Sources, of which the keys of a span's attributes select: a span has few of the attributes that are sources.

    Args:
        sources: The sources, in the order in which they are asked.
        beginnings: Beginnings of the keys over which values are spread, also those of other tables.
    """

    __slots__ = ("_beginnings", "_selected", "_sources", "_spread")

    def __init__(self, sources: Iterable[Source], beginnings: tuple[str, ...] = ()) -> None:
        self._sources = tuple(sources)
        self._beginnings = beginnings
        self._spread = KeyTable(self._keys_of_spread)
        self._selected = KeyTable(self._select)

    def _keys_of_spread(self, keys: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(key for key in keys if key.startswith(self._beginnings))

    def _select(self, keys: Mapping[str, Any]) -> tuple[tuple[Source, ...], tuple[Source, ...]]:
        has_spread = bool(self._keys_of_spread(keys))
        of_attributes = (_ATTRIBUTE, _SPREAD)
        with_events = tuple(
            source
            for source in self._sources
            if source.place not in of_attributes or (has_spread if source.place is _SPREAD else source.key in keys)
        )
        return tuple(source for source in with_events if source.place in of_attributes), with_events

    def read_all(self, span: Span) -> Iterator[Any]:
        """Yields what is read from each source that the span has."""
        there = span.attributes
        without_events, with_events = self._selected.of(span.key_set)
        spread: Mapping[str, Any] | None = None
        for key, read, _, place in with_events if span.events else without_events:
            if not place:
                if (value := there[key]) is not None:
                    yield read(span, value)
            elif place is _SPREAD:
                if spread is None:
                    spread = {each: there[each] for each in self._spread.of(span.key_set)}
                yield read(span, spread)
            elif place is _SPAN:
                yield read(span, None)
            else:
                for event in named_events(span, key):
                    yield read(span, event)
