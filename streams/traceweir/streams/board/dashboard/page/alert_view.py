"""Prepares alerts for pages: what to call them, and links to a filled comparison and to the sessions behind them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from traceweir.schemas.alert import Alert
from traceweir.streams.board.dashboard.page.commands import accept_command
from traceweir.streams.board.dashboard.page.filters import LABELS, Filters
from traceweir.streams.board.dashboard.page.formats import iso
from traceweir.streams.board.dashboard.page.marks import ChartMark
from traceweir.streams.board.store.tables import RESULT_DIMENSIONS

SHORTEST_SIDE = timedelta(days=1)
"""The least time before a change that is compared with the time after it."""
OF_LABEL = "labels."
"""What the name of a dimension begins with that is a label of scores."""
WATCHED = {
    "pass_rate": "pass rate",
    "mean": "mean",
    "not_evaluated": "share not scored",
    "above_limit": "share above the limit",
    "below_limit": "share below the limit",
    "category": "share of the category",
    "freshness": "freshness",
}
"""What a rule watches, as pages call it."""


class AlertView(NamedTuple):
    """An alert with its links."""

    found: Alert
    of: str
    """What has changed, such as the pass rate. A category or a limit belongs after it."""
    moved: str
    """`fell` or `rose`."""
    slice: Sequence[tuple[str, str | None]]
    """The names of the dimensions of its slice, as pages call them, with their values."""
    not_compared: Sequence[str]
    """The dimensions by which neither the comparison nor the list of sessions can be narrowed."""
    here: str
    """Address of the alert alone."""
    compare: str
    """Address of the comparison of the results before the onset with those after it."""
    sessions: str
    """Address of the sessions since the onset: those that failed, or else the worst first."""
    accept: str | None
    """The command that takes the rate since the onset as the usual one; None if no command line can name the alert."""


def alert_view(alert: Alert, filters: Filters, now: datetime) -> AlertView:
    """Returns an alert with its links.

    Args:
        alert: The alert.
        filters: Those of the page. A link leaves out what the alert itself says: its time and its slice.
        now: The present time, at which an open alert ends.
    """
    rises = alert.effect.estimate > 0
    slice_of = alert.stream.slice
    dimensions = {name: value for name, value in slice_of.items() if name in RESULT_DIMENSIONS and value is not None}
    until = None if alert.state == "raised" else iso(alert.occurred_at)
    compared: dict[str, object] = {"span": None, "since": None, "until": None}
    for side, (begin, end) in _sides(alert, now).items():
        values = {**dimensions, "since": iso(begin), "until": end}
        compared |= {f"{side}_{name}": value for name, value in values.items() if value is not None}
    order = "highest" if rises else "lowest"
    listed: dict[str, object] = {
        **dimensions,
        "since": iso(alert.onset.at),
        "until": until,
        "metric": alert.stream.metric,
        "user_id": slice_of.get("user_id"),
        **{
            "pass_rate": {"status": "FAILED"},
            "not_evaluated": {"status": "NOT_EVALUATED"},
            "mean": {"order": order},
            "above_limit": {"order": order},
            "below_limit": {"order": "lowest" if rises else "highest"},
            "category": {},
            "freshness": {},
        }[alert.what],
    }
    return AlertView(
        alert,
        WATCHED[alert.what],
        "rose" if rises else "fell",
        [(dimension_name(name), value) for name, value in slice_of.items()],
        [dimension_name(name) for name in slice_of if name not in dimensions],
        filters.link("/alerts", alert_id=alert.alert_id),
        filters.link("/compare", compared),
        filters.link("/sessions", listed),
        accept_command(alert.alert_id),
    )


def alert_views(alerts: Iterable[Alert], filters: Filters, now: datetime) -> list[AlertView]:
    """Returns alerts with their links, in their order."""
    return [alert_view(each, filters, now) for each in alerts]


def alert_marks(alerts: Iterable[Alert]) -> list[ChartMark]:
    """Returns the marks of alerts, at the onset with its interval."""
    return [
        ChartMark(each.onset.at, f"alert: {each.stream.metric}", (each.onset.earliest, each.onset.latest))
        for each in alerts
    ]


def _sides(alert: Alert, now: datetime) -> dict[str, tuple[datetime, str | None]]:
    """Returns the begin and the end of both sides of a comparison; an end that is None is the present time."""
    ended = None if alert.state == "raised" else alert.occurred_at
    onset = alert.onset.at
    length = max((ended or now) - onset, SHORTEST_SIDE)
    try:
        begin = onset - length
    except OverflowError:
        begin = onset
    return {"first": (begin, iso(onset)), "second": (onset, None if ended is None else iso(ended))}


def dimension_name(dimension: str) -> str:
    """Returns what pages call a dimension of a slice."""
    return LABELS.get(dimension, dimension.removeprefix(OF_LABEL).replace("user_id", "user"))
