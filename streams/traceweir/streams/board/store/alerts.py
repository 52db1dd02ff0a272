"""Answers which alerts are open and which have ended, the newest first. Reads no clock and no Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from traceweir.schemas.alert import Alert, AlertState
from traceweir.schemas.text import printable
from traceweir.streams.board.store.rows import REMOVED
from traceweir.streams.board.store.selection import Readable, Selection, stored

MAX_ALERTS = 500
"""The most alerts that one question reads."""
MAX_CHARS = 1_100
"""Characters of a place in the list: those of a time and of an id."""
_THERE = f"state <> '{REMOVED}'"


@dataclass(frozen=True)
class AlertPlace:
    """A place in the list of alerts: by the time of their last record, the newest first; then by id."""

    at: datetime
    """The time of the last alert before this place, as columns have it: in UTC, without a zone."""
    alert_id: str
    """Id of the last alert before this place."""

    def __str__(self) -> str:
        """Returns the place as addresses contain it.

        >>> str(AlertPlace(datetime(2026, 1, 31, 12), "a-1"))
        '2026-01-31T12:00:00.000000Z,a-1'
        """
        return f"{self.at.isoformat(timespec='microseconds')}Z,{self.alert_id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Returns the place that an address contains.

        Raises:
            ValueError: the text is no place; the message says so.

        >>> AlertPlace.parse("2026-01-31T12:00:00Z,a,1").alert_id
        'a,1'
        """
        at, _, alert_id = text.partition(",")
        try:
            moment = datetime.fromisoformat(at)
            at_utc = stored(moment)
        except (ValueError, OverflowError):
            alert_id = ""
        if not alert_id or moment.tzinfo is None or len(text) > MAX_CHARS:
            raise ValueError(
                f"{printable(text, 100)!r} is not a place in the list; take it from the link to older alerts"
            )
        return cls(at_utc, alert_id)


@dataclass(frozen=True)
class AlertPage:
    """A part of a list of alerts."""

    alerts: list[Alert]
    """The alerts, in their order."""
    next: AlertPlace | None
    """Where the list goes on; None at its end."""
    total: int
    """Number of alerts of the whole list."""


def alert_page(
    store: Readable,
    *,
    state: AlertState | None = None,
    metric: str | None = None,
    alert_id: str | None = None,
    limit: int = 50,
    after: AlertPlace | None = None,
) -> AlertPage:
    """Returns a part of the alerts, those with the newest record first.

    Args:
        store: Answers the questions.
        state: Only alerts that are open (`raised`), or that have ended (`resolved`).
        metric: Only alerts of this metric.
        alert_id: Only the alert with this id.
        limit: The most alerts, `MAX_ALERTS` at most.
        after: Where the list goes on; None: at its beginning.
    """
    wanted = {"state": state, "metric": metric, "alert_id": alert_id}
    given: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    conditions = [_THERE, *(f"{name} = ${name}" for name in given)]
    (counted,) = store.query(f"SELECT count(*) AS n FROM alerts WHERE {' AND '.join(conditions)}", given)
    if after is not None:
        conditions.append("(occurred_at < $after_at OR (occurred_at = $after_at AND alert_id > $after_id))")
        given |= {"after_at": after.at, "after_id": after.alert_id}
    most = min(limit, MAX_ALERTS)
    rows = store.query(
        f"SELECT occurred_at, alert_id, document FROM alerts WHERE {' AND '.join(conditions)} "
        f"ORDER BY occurred_at DESC, alert_id LIMIT {most + 1}",
        given,
    )
    shown = rows[:most]
    further = AlertPlace(shown[-1]["occurred_at"], shown[-1]["alert_id"]) if len(rows) > most else None
    return AlertPage(_read(shown), further, int(counted["n"]))


def alerts_in(store: Readable, selection: Selection) -> list[Alert]:
    """Returns the alerts whose change can be in a time range, by time; of a stream that the selection does not exclude.

    An alert of all agents is one of each of them. At most the `MAX_ALERTS` newest are read.

    Args:
        store: Answers the question.
        selection: The time range, the metric and the dimensions.
    """
    conditions = [_THERE, "onset_from < $until", "onset_to >= $since"]
    given: dict[str, Any] = selection.span
    if selection.metric is not None:
        conditions.append("metric = $metric")
        given["metric"] = selection.metric
    rows = store.query(
        f"SELECT document FROM alerts WHERE {' AND '.join(conditions)} ORDER BY occurred_at DESC, alert_id LIMIT {MAX_ALERTS}",
        given,
    )
    found = [each for each in _read(rows) if fits(each, selection)]
    return sorted(found, key=lambda each: (each.onset.at, each.alert_id))


def fits(alert: Alert, selection: Selection) -> bool:
    """Returns whether the scores of an alert can be among those of a selection: neither its metric nor its slice differs."""
    if selection.metric not in (None, alert.stream.metric):
        return False
    return all(value == selection.dimensions.get(name, value) for name, value in alert.stream.slice.items())


def _read(rows: Iterable[Mapping[str, Any]]) -> list[Alert]:
    return [Alert.model_validate_json(row["document"]) for row in rows]
