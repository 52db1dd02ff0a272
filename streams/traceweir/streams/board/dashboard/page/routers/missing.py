"""Serves the pages of what has no score: results without a value, and dead letters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from traceweir.streams.board.dashboard.content import shown
from traceweir.streams.board.dashboard.context import Dashboard, Serving
from traceweir.streams.board.dashboard.page import charts
from traceweir.streams.board.dashboard.page.alert_view import alert_marks, alert_views
from traceweir.streams.board.dashboard.page.answers import filters_from, page
from traceweir.streams.board.dashboard.page.marks import ChartMark, marks_of
from traceweir.streams.board.store.alerts import alerts_in
from traceweir.streams.board.store.conditions import NO_CAUSE
from traceweir.streams.board.store.counts import dead_letters_over_time, not_scored_over_time
from traceweir.streams.board.store.metric import dimension_values
from traceweir.streams.board.store.missing_answers import CountPoint
from traceweir.streams.board.store.overview import changes_in, step_of
from traceweir.streams.board.store.selection import Readable, Selection
from traceweir.streams.board.store.sessions import dead_letters, not_scored

router = APIRouter()


@router.get("/not-scored")
def show_not_scored(request: Request, dashboard: Serving) -> HTMLResponse:
    filters = filters_from(request)
    found = [shown(each, dashboard.options.content) for each in not_scored(dashboard.store, filters.selection)]
    alerts = [each for each in alerts_in(dashboard.store, filters.selection) if each.what == "not_evaluated"]
    return page(
        request,
        "not-scored",
        filters,
        found=found,
        chart=_chart(dashboard, filters.selection, not_scored_over_time, alert_marks(alerts)),
        alerts=alert_views(alerts, filters, dashboard.options.now()),
        no_cause=NO_CAUSE,
        values=dimension_values(dashboard.store, filters.selection),
    )


@router.get("/dead-letters")
def show_dead_letters(request: Request, dashboard: Serving) -> HTMLResponse:
    filters = filters_from(request)
    found = shown(dead_letters(dashboard.store, filters.selection), dashboard.options.content)
    chart = _chart(dashboard, filters.selection, dead_letters_over_time)
    return page(request, "dead-letters", filters, found=found, chart=chart)


def _chart(
    dashboard: Dashboard,
    selection: Selection,
    over_time: Callable[[Readable, Selection, int], list[CountPoint]],
    marks: Sequence[ChartMark] = (),
) -> dict[str, Any] | None:
    step_s = step_of((selection.until - selection.since).total_seconds())
    every = [*marks_of(changes_in(dashboard.store, selection), dashboard.options.configs()), *marks]
    return charts.count_chart(over_time(dashboard.store, selection, step_s), every, step_s, selection)
