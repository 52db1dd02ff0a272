"""Serves the list of metrics, and the page of one metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from traceweir.streams.board.dashboard.content import shown
from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.board.dashboard.page import charts
from traceweir.streams.board.dashboard.page.alert_view import alert_marks, alert_views
from traceweir.streams.board.dashboard.page.answers import filters_from, page
from traceweir.streams.board.dashboard.page.filters import FilterError
from traceweir.streams.board.dashboard.page.marks import marks_of
from traceweir.streams.board.dashboard.page.outages import outages
from traceweir.streams.board.store.alerts import alerts_in
from traceweir.streams.board.store.answers import MetricFigures
from traceweir.streams.board.store.differences import differences_from_before
from traceweir.streams.board.store.metric import dimension_values, metric
from traceweir.streams.board.store.overview import figures_by_metric, figures_with_quantiles, series_of, step_of

router = APIRouter()


@router.get("/metrics")
def show_metrics(request: Request, dashboard: Serving) -> HTMLResponse:
    filters = filters_from(request)
    step_s = step_of((filters.selection.until - filters.selection.since).total_seconds())
    found = figures_with_quantiles(dashboard.store, filters.selection)
    return page(
        request,
        "metrics",
        filters,
        criteria=found,
        moves=differences_from_before(found, figures_by_metric(dashboard.store, filters.before())),
        sparklines=charts.sparklines(
            found, series_of(dashboard.store, filters.selection, step_s), step_s, filters.selection
        ),
        values=dimension_values(dashboard.store, filters.selection),
    )


@router.get("/metric")
def show_metric(request: Request, dashboard: Serving) -> HTMLResponse:
    filters = filters_from(request)
    if filters.selection.metric is None:
        raise FilterError("metric is missing: name one")
    found = metric(dashboard.store, filters.selection)
    places = [(each.metric, each.level) for each in found.figures][: charts.MAX_LINES]
    charted = _main_judge(found.figures)
    series = found.series
    if charted is not None:
        of_judge = replace(filters.selection, dimensions={**filters.selection.dimensions, "judge": charted})
        series = series_of(dashboard.store, of_judge, found.step_s)
    alerts = alerts_in(dashboard.store, filters.selection)
    marks = [*marks_of(found.changes, dashboard.options.configs()), *alert_marks(alerts)]
    # Results without a value name no judge.
    without_values = outages(found.series, found.step_s)
    document = shown(found, dashboard.options.content)
    return page(
        request,
        "metric",
        filters,
        found=found,
        worst=document["worst"],
        nearest=document["nearest"],
        charted=charted,
        alerts=alert_views(alerts, filters, dashboard.options.now()),
        rates=charts.pass_rate_chart(series, places, marks, found.step_s, filters.selection, without_values),
        means=charts.mean_chart(series, places, marks, found.step_s, filters.selection, without_values),
        without_values=without_values,
        distribution=charts.histogram(found.distribution),
        values=dimension_values(dashboard.store, filters.selection),
    )


def _main_judge(figures: Sequence[MetricFigures]) -> str | None:
    """Returns the judge of the most results if several have judged at a level; None if there is nothing to tell apart."""
    if all(len(each.judges) < 2 for each in figures):
        return None
    results = Counter[str]()
    for each in figures:
        for part in each.by_judge:
            if part.judge is not None:
                results[part.judge] += part.results
    return min(results, key=lambda judge: (-results[judge], judge))
