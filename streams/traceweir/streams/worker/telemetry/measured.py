"""Holds counts and distributions by instrument and attributes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from traceweir.schemas.text import printable
from traceweir.streams.worker.telemetry.catalogue import Instrument

Attributes = tuple[str, ...]
"""Values of the attributes of an instrument, in their order."""
MAX_SERIES = 500
"""Maximum number of different attributes of an instrument; further ones are counted as `other`."""
_OTHER = "other"
_VALUE_CHARS = 120


class Distribution:
    """Counts values by bucket."""

    __slots__ = ("bounds", "buckets", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        """Number of values up to each bound, and beyond the last."""
        self.total = 0.0
        """Sum of the values."""

    def add(self, value: float) -> None:
        """Adds a value."""
        self.buckets[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        """Number of values."""
        return sum(self.buckets)


class Point(NamedTuple):
    """A value of an instrument."""

    instrument: Instrument
    attributes: Attributes
    value: float | Distribution


class Measured:
    """Adds up what is measured."""

    def __init__(self) -> None:
        self._sums: dict[Instrument, dict[Attributes, float]] = {}
        self._distributions: dict[Instrument, dict[Attributes, Distribution]] = {}

    def add(self, instrument: Instrument, number: float, *attributes: str) -> None:
        """Adds to a counter."""
        found = self._sums.setdefault(instrument, {})
        if attributes not in found:
            attributes = _bounded(found, instrument, attributes)
        found[attributes] = found.get(attributes, 0) + number

    def record(self, instrument: Instrument, value: float, *attributes: str) -> None:
        """Adds a value to a histogram."""
        self.distribution(instrument, *attributes).add(value)

    def distribution(self, instrument: Instrument, *attributes: str) -> Distribution:
        """Returns the distribution of a histogram, for a caller that adds many values."""
        found = self._distributions.setdefault(instrument, {})
        distribution = found.get(attributes)
        if distribution is None:
            attributes = _bounded(found, instrument, attributes)
            distribution = found.setdefault(attributes, Distribution(instrument.bounds))
        return distribution

    def points(self) -> Iterator[Point]:
        """Yields all sums and distributions."""
        for sums in self._sums.items():
            yield from (Point(sums[0], attributes, number) for attributes, number in sums[1].items())
        for distributions in self._distributions.items():
            yield from (Point(distributions[0], attributes, found) for attributes, found in distributions[1].items())


def _bounded(known: Mapping[Attributes, object], instrument: Instrument, attributes: Attributes) -> Attributes:
    """Returns the attributes as they are counted: short, printable, and one series for all beyond `MAX_SERIES`."""
    if len(attributes) != len(instrument.attributes):
        raise ValueError(f"{instrument.name} has the attributes {instrument.attributes}, and not {len(attributes)}")
    shown = tuple(printable(value, _VALUE_CHARS) for value in attributes)
    if len(known) >= MAX_SERIES and shown not in known:
        return (_OTHER,) * len(shown)
    return shown
