"""Prepares what got worse for the overview: open alerts and regressions, metric by metric, each finding once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from traceweir.schemas.alert import Alert
from traceweir.streams.board.dashboard.page.alert_view import AlertView
from traceweir.streams.board.dashboard.page.filters import Filters
from traceweir.streams.board.dashboard.page.formats import iso
from traceweir.streams.board.store.answers import Regression, Regressions


class RegressionView(NamedTuple):
    """A regression with its links."""

    found: Regression
    compare: str
    """Address of the comparison of the results before the change with those after it."""
    sessions: str
    """Address of the sessions after the change: those that failed, where a threshold judges."""


class WorseMetric(NamedTuple):
    """What got worse of one metric."""

    alerts: Sequence[AlertView]
    """Its open alerts, the newest first."""
    regressions: Sequence[RegressionView]
    """What no alert says: first that of all results, or else the surest one."""


def worse_metrics(regressions: Regressions, alerts: Sequence[AlertView], filters: Filters) -> list[WorseMetric]:
    """Returns the metrics that got worse: those with an open alert first, then the surest."""
    alerts_of: dict[str, list[AlertView]] = {}
    for view in alerts:
        alerts_of.setdefault(view.found.stream.metric, []).append(view)
    found_of: dict[str, list[Regression]] = {metric: [] for metric in alerts_of}
    for each in regressions.found:
        said = alerts_of.get(each.metric, ())
        if not any(is_said_by(view.found, each) for view in said):
            found_of.setdefault(each.metric, []).append(each)
    worse = []
    for metric, same_metric in found_of.items():
        ordered = sorted(same_metric, key=lambda regression: regression.dimension is not None)
        views = [_view(each, regressions.since, filters) for each in ordered]
        worse.append(WorseMetric(alerts_of.get(metric, ()), views))
    return worse


def is_said_by(alert: Alert, found: Regression) -> bool:
    """Returns whether an alert and a regression are one finding: the same results, and a change within the onset's interval."""
    return (
        (alert.stream.metric, alert.stream.level) == (found.metric, found.level)
        and alert.what == _WATCHED[found.of]
        and _is_same_slice(alert.stream.slice, found)
        and alert.onset.earliest <= found.at <= alert.onset.latest
    )


_WATCHED = {"pass rate": "pass_rate", "mean": "mean"}


def _is_same_slice(slice_of: Mapping[str, str | None], found: Regression) -> bool:
    own = {} if found.dimension is None else {found.dimension: found.value}
    # After a new version of an agent, the results of this agent alone are compared.
    return slice_of in (own, {**own, "agent_name": found.agent_name})


def _view(found: Regression, since: datetime, filters: Filters) -> RegressionView:
    dimensions = {found.dimension: found.value} if found.dimension is not None else {}
    if found.agent_name is not None:
        dimensions["agent_name"] = found.agent_name
    until = filters.selection.until
    sides = {"first": (since, found.at), "second": (found.at, until)}
    compared = {
        f"{side}_{name}": value
        for side, (begin, end) in sides.items()
        for name, value in {**dimensions, "since": iso(begin), "until": iso(end)}.items()
    }
    status = "FAILED" if found.of == "pass rate" else None
    return RegressionView(
        found,
        filters.link("/compare", compared),
        filters.link(
            "/sessions", {**dimensions, "since": iso(found.at), "until": iso(until)}, metric=found.metric, status=status
        ),
    )
