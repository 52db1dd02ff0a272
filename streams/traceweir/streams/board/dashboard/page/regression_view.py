"""Prepares what got worse for the overview: one line for each metric, with links to a filled comparison and to sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

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
    """The regressions of one metric."""

    first: RegressionView
    """That of all results, or else the surest one."""
    others: Sequence[RegressionView]
    """Those of other slices."""


def worse_metrics(regressions: Regressions, filters: Filters) -> list[WorseMetric]:
    """Returns the metrics that got worse, the surest first."""
    by_metric: dict[str, list[Regression]] = {}
    for each in regressions.found:
        by_metric.setdefault(each.metric, []).append(each)
    found = []
    for same_metric in by_metric.values():
        ordered = sorted(same_metric, key=lambda regression: regression.dimension is not None)
        views = [_view(regression, regressions.since, filters) for regression in ordered]
        found.append(WorseMetric(views[0], views[1:]))
    return found


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
