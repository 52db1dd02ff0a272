"""Says which anchor is judged when: evenly over the day, each time one that is drawn among all of a criterion.

The times follow from the clock alone, and the draw from the time, so that a process that starts again goes on where the
clock is, and no process has to remember anything. Anchors are drawn with replacement: only so has the next verdict the same
mean, whatever came before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from traceweir.streams.tools.anchors.choosing import drawn_point

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000
"""Microseconds."""


def next_due(now: datetime, per_day: int) -> datetime:
    """Returns the first time after a moment at which an anchor is judged.

    >>> next_due(datetime(2026, 1, 1, 0, 7, tzinfo=UTC), 240).isoformat()
    '2026-01-01T00:12:00+00:00'
    """
    return _time_of(_number(now, per_day) + 1, per_day)


def latest_due(now: datetime, per_day: int) -> datetime:
    """Returns the latest time up to a moment at which an anchor is judged.

    >>> latest_due(datetime(2026, 1, 1, 0, 7, tzinfo=UTC), 240).isoformat()
    '2026-01-01T00:06:00+00:00'
    """
    return _time_of(_number(now, per_day), per_day)


def drawn_anchor(due_at: datetime, per_day: int, anchors: Mapping[str, Sequence[str]]) -> str:
    """Returns the id of the anchor whose turn it is.

    Args:
        due_at: A time of `next_due`.
        per_day: How many anchors are judged a day.
        anchors: The ids of the anchors of each criterion; at least one criterion, and each has at least one. The criteria
            take turns.
    """
    criteria = sorted(anchors)
    criterion = criteria[_number(due_at, per_day) % len(criteria)]
    ids = sorted(anchors[criterion])
    return ids[int(drawn_point("anchor judged", criterion, due_at.isoformat()) * len(ids))]


def _number(moment: datetime, per_day: int) -> int:
    """Returns how many turns there were since 1970."""
    return (moment - _EPOCH) // _MICROSECOND * per_day // _DAY


def _time_of(number: int, per_day: int) -> datetime:
    # Rounded up, so that a turn has its own number.
    return _EPOCH + -(-number * _DAY // per_day) * _MICROSECOND
