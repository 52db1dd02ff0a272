"""Answers in which values of dimensions the pass rate of an alert has changed, before and after its onset."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

from traceweir.schemas.alert import Alert
from traceweir.streams.board.store.differences import (
    DEPENDENT,
    MOST_COMPUTED,
    Pair,
    Sample,
    TestedDifference,
    differences_of,
)
from traceweir.streams.board.store.figures import rollups_of
from traceweir.streams.board.store.selection import Readable, Selection, stored
from traceweir.streams.board.store.tables import RESULT_DIMENSIONS

MOST_CARRYING = 5
"""Maximum number of slices of an answer."""
MOST_VALUES = 500
"""Maximum number of values of one dimension; a dimension with more is left out."""
SHORTEST_SIDE = timedelta(days=1)
"""The least time before a change that is compared with the time after it."""


@dataclass(frozen=True)
class CarryingSlice:
    """A value of a dimension whose pass rate has changed as that of the alert."""

    dimension: str
    value: str
    before: float
    """Pass rate before the interval of the onset."""
    after: float
    """Pass rate after it."""
    effect: TestedDifference
    """The difference, with an interval that is corrected for the number of slices."""
    share: float
    """The share of the results after the onset that have this value, from 0 to 1."""


@dataclass(frozen=True)
class AlertSlices:
    """The slices that carry the change of an alert."""

    tested: int
    """Number of slices with enough results on both sides; all of them were tested."""
    carrying: list[CarryingSlice]
    """Those that have changed beyond chance, the surest first; at most `MOST_CARRYING`."""
    left_out: list[str]
    """Dimensions with too many values."""
    of_one_value: list[str]
    """Dimensions of which all results have the same value: a slice of one is the alert itself, and is left out."""


def alert_slices(store: Readable, alert: Alert, now: datetime) -> AlertSlices | None:
    """Returns the slices that carry the change of an alert; None if the store cannot say.

    The interval of the onset is left out, so that no result is on the wrong side. The intervals suppose, as that of the
    alert does, that the alert is right. Only pass rates of sessions and traces are compared, because results of one session
    are alike; and only alerts whose slice the figures have, which know no user and no label.

    Args:
        store: Has the figures.
        alert: The alert.
        now: The present time, at which the results of an open alert end.

    Raises:
        StoreError: the store cannot answer.
    """
    stream = alert.stream
    until = now if alert.state == "raised" else alert.occurred_at
    slice_of = {name: value for name, value in stream.slice.items() if value is not None}
    is_known = len(slice_of) == len(stream.slice) and set(slice_of) <= set(RESULT_DIMENSIONS)
    if alert.what != "pass_rate" or stream.level == DEPENDENT or not is_known or until <= alert.onset.latest:
        return None
    since = alert.onset.earliest - max(until - alert.onset.latest, SHORTEST_SIDE)
    selection = Selection(since, until, slice_of, stream.metric)
    pairs: dict[tuple[str, str], Pair] = {}
    left_out = []
    of_one_value = []
    whole = _by_period(_rows(store, selection, alert, "level"))
    for name in RESULT_DIMENSIONS:
        if name in slice_of:
            continue
        rows = _rows(store, selection, alert, name)
        if len(rows) > 2 * MOST_VALUES:
            left_out.append(name)
            continue
        values = {value: _by_period(found) for value, found in groupby(rows, itemgetter("slice_value"))}
        if [*values.values()] == [whole]:
            of_one_value.append(name)
            continue
        pairs |= {(name, value): Pair(stream.level, *sides) for value, sides in values.items()}
    tested = sum(pair.of == "pass rate" for pair in pairs.values())
    found = {
        key: each
        for key, each in differences_of(pairs, most=MOST_COMPUTED, simultaneous=True).items()
        if each.differs and each.difference * alert.effect.estimate > 0
    }
    surest = sorted(found, key=lambda key: (-found[key].surely, key))[:MOST_CARRYING]
    carrying = [_carrying(key, pairs[key], found[key], whole[1].judged) for key in surest]
    return AlertSlices(tested, carrying, left_out, of_one_value)


def _carrying(key: tuple[str, str], pair: Pair, effect: TestedDifference, whole: int) -> CarryingSlice:
    before, after = (side.passed / side.judged for side in (pair.first, pair.second))
    return CarryingSlice(*key, before, after, effect, pair.second.judged / max(whole, 1))


def _rows(store: Readable, selection: Selection, alert: Alert, name: str) -> list[dict[str, Any]]:
    """Returns the sums of each value of a dimension before (period 0) and after (1) the interval of the onset."""
    ends = {"onset_from": stored(alert.onset.earliest), "onset_to": stored(alert.onset.latest)}
    source, where, parameters = rollups_of(selection, divided_at=[alert.onset.earliest, alert.onset.latest])
    return store.query(
        f"SELECT {name} AS slice_value, CASE WHEN minute >= $onset_to THEN 1 ELSE 0 END AS period, "
        f"sum(passed) AS passed, sum(failed) AS failed FROM {source} AS every WHERE {where} AND level = $level "
        f"AND {name} IS NOT NULL AND (minute < $onset_from OR minute >= $onset_to) "
        f"GROUP BY slice_value, period ORDER BY slice_value, period LIMIT {2 * MOST_VALUES + 1}",
        {**parameters, **ends, "level": alert.stream.level},
    )


def _by_period(rows: Iterable[dict[str, Any]]) -> tuple[Sample, Sample]:
    """Returns the sums of one value before the interval of the onset, and after it."""
    sums = {row["period"]: (int(row["passed"]), int(row["failed"])) for row in rows}
    before, after = (
        Sample(passed, passed + failed, None) for passed, failed in (sums.get(at, (0, 0)) for at in (0, 1))
    )
    return before, after
