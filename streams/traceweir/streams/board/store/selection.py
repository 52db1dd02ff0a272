"""Defines what a question to the store is about, and turns it into a condition of SQL.

Every value of a caller is a parameter of the SQL, never text of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from traceweir.streams.base.canary_app import CANARY_APP
from traceweir.streams.board.store.tables import RESULT_DIMENSIONS


class Readable(Protocol):
    """A store that answers queries."""

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Returns the rows of a query, each by the names of its columns."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A time range, and values that dimensions must have.

    Raises:
        ValueError: the time range ends before it begins or leaves the years 1 to 9999, or a name is not that of a dimension.
    """

    since: datetime
    """Begin of the time range, with its time zone."""
    until: datetime
    """End of the time range, with its time zone; not part of the time range."""
    dimensions: Mapping[str, str] = field(default_factory=dict)
    """The value of each dimension that is selected."""
    metric: str | None = None
    """The name of a metric; None selects all."""

    def __post_init__(self) -> None:
        try:
            stored(self.since), stored(self.until)
        except OverflowError:
            raise ValueError("the time range leaves the years 1 to 9999 in UTC") from None
        if self.until <= self.since:
            raise ValueError(
                f"the time range ends at {self.until:%Y-%m-%d %H:%M:%S} and begins at {self.since:%Y-%m-%d %H:%M:%S}"
            )
        for name in self.dimensions:
            if name not in RESULT_DIMENSIONS:
                raise ValueError(f"{name!r} is not a dimension; choose from {', '.join(RESULT_DIMENSIONS)}")

    @property
    def span(self) -> dict[str, Any]:
        """The parameters `since` and `until`, as the columns of the store have times: in UTC, without a zone."""
        return {"since": stored(self.since), "until": stored(self.until)}

    @property
    def is_about_results(self) -> bool:
        """Whether it selects by what only results have: a metric, or the judge."""
        return self.metric is not None or "judge" in self.dimensions

    def where(self, time: str, *, of_results: bool = True, side: str = "") -> tuple[str, dict[str, Any]]:
        """Returns the condition for rows with this column of time, and its parameters.

        Args:
            time: The column.
            of_results: Whether the rows are results; other rows have no metric and no judge that could be a condition.
            side: What the names of the parameters begin with, for a query about two selections.
        """
        dimensions = {name: value for name, value in self.dimensions.items() if of_results or name != "judge"}
        # A canary says whether the pipeline works, and nothing of agents.
        no_canary = [] if "app_name" in dimensions else [f"coalesce(app_name, '') <> '{CANARY_APP}'"]
        if of_results and self.metric is not None:
            dimensions["metric"] = self.metric
        conditions = [
            f"{time} >= ${side}since",
            f"{time} < ${side}until",
            *(f"{name} = ${side}{name}" for name in dimensions),
            *no_canary,
        ]
        return " AND ".join(conditions), {f"{side}{name}": value for name, value in {**self.span, **dimensions}.items()}


def whole_minutes(since: datetime, until: datetime) -> tuple[datetime, datetime]:
    """Returns a span that begins and ends with a minute, as figures are added up by the minute, and contains the given one.

    >>> [str(moment) for moment in whole_minutes(*map(datetime.fromisoformat, ("2026-01-31T12:00:30Z", "2026-01-31T12:01:01Z")))]
    ['2026-01-31 12:00:00+00:00', '2026-01-31 12:02:00+00:00']
    """
    begin = since.replace(second=0, microsecond=0)
    end = until.replace(second=0, microsecond=0)
    try:
        return begin, end if end == until else end + timedelta(minutes=1)
    except OverflowError:
        return begin, until


def in_utc(stored: datetime) -> datetime:
    """Returns a time of a column with its zone."""
    return stored.replace(tzinfo=UTC)


def stored(moment: datetime) -> datetime:
    """Returns a time as columns have it: in UTC, without a zone."""
    return moment.astimezone(UTC).replace(tzinfo=None)
