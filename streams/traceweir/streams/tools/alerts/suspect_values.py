"""Keeps when the values of suspected fields came into a stream, as new ones or after an absence, bounded."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from traceweir.schemas.dimensions import MAX_LABELS
from traceweir.streams.base.statistics.watched_stream import DAY
from traceweir.streams.tools.alerts.watched_scores import SUSPECTS
from traceweir.streams.tools.results.selection import LABEL

MOST_VALUES = 50
"""A field with more values in a stream is no suspect any more: new values come all the time."""
MOST_LABELS = MAX_LABELS
"""Names of labels of a stream at most, by first appearance; further ones are no suspects."""
ABSENT = DAY
"""A value that scores of the stream have lacked for so many minutes, and have again, has come again."""

SuspectRow: TypeAlias = dict[str, dict[str, tuple[int, int]] | None]
"""By field, the values with the minutes in which they came and were last seen; None: there were too many."""


class CameValue(NamedTuple):
    """A value of a field, and when it came."""

    field: str
    value: str
    minute: int
    """Minutes since 1970."""


class SuspectValues:
    """The values of the fields `SUSPECTS`, and of labels, in the scores of a stream.

    There are at most `MOST_VALUES` values, of 256 characters, of each of 7 fields and `MOST_LABELS` labels: 200 kB if
    agents do what they can; with three versions, models and configs, under 1 kB.

    Args:
        row: What `row` returned; empty for a new stream.
    """

    def __init__(self, row: Mapping[str, Mapping[str, tuple[int, int]] | None] | None = None) -> None:
        self._fields: SuspectRow = {
            field: None if values is None else dict(values) for field, values in (row or {}).items()
        }

    def row(self) -> SuspectRow:
        """Returns the state."""
        return self._fields

    def note(self, minute: int, found: Collection[tuple[str | None, ...]], last: int) -> None:
        """Takes the values in the scores of a minute.

        Args:
            minute: Minutes since 1970.
            found: As `suspects_of` returns them.
            last: The minute of the stream's scores before: a stream without scores lacks all values.
        """
        # In their order, because only the first labels are kept.
        for field, value in sorted({pair for values in found for pair in _pairs(values)}):
            self._note(minute, field, value, last)

    def within(self, earliest: int, latest: int) -> list[CameValue]:
        """Returns the values that came in an interval of minutes, both ends included."""
        return [
            CameValue(field, value, came)
            for field, values in self._fields.items()
            for value, (came, _) in (values or {}).items()
            if earliest <= came <= latest
        ]

    @property
    def unknown(self) -> list[str]:
        """The fields of `SUSPECTS` with too many values to know when they came."""
        return [field for field in SUSPECTS if self._fields.get(field, {}) is None]

    def has(self, field: str) -> bool:
        """Whether a score had a value of this field."""
        return field in self._fields

    def _note(self, minute: int, field: str, value: str, last: int) -> None:
        if field not in self._fields:
            if field.startswith(LABEL) and sum(each.startswith(LABEL) for each in self._fields) >= MOST_LABELS:
                return
            self._fields[field] = {}
        known = self._fields[field]
        if known is None:
            return
        came, seen = known.get(value, (minute, minute))
        known[value] = (minute if last - seen >= ABSENT else came, minute)
        if len(known) > MOST_VALUES:
            self._fields[field] = None


def _pairs(values: tuple[str | None, ...]) -> Iterator[tuple[str, str]]:
    for field, value in zip(SUSPECTS, values, strict=False):
        if value is not None:
            yield field, value
    labels = values[len(SUSPECTS) :]
    for name, value in zip(labels[::2], labels[1::2], strict=True):
        yield f"{LABEL}{name}", value or ""
