"""Serves the overview: what changed, and each criterion with its trend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from traceweir.schemas.score import GATE
from traceweir.streams.base.statistics.rate_intervals import count_change
from traceweir.streams.board.dashboard.content import shown_text
from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.board.dashboard.page import charts
from traceweir.streams.board.dashboard.page.alert_view import alert_marks, alert_views
from traceweir.streams.board.dashboard.page.answers import filters_from, page
from traceweir.streams.board.dashboard.page.marks import marks_of
from traceweir.streams.board.dashboard.page.outages import outages
from traceweir.streams.board.dashboard.page.regression_view import worse_metrics
from traceweir.streams.board.store.alerts import MAX_ALERTS, alert_page, alerts_in, fits
from traceweir.streams.board.store.answers import MetricFigures
from traceweir.streams.board.store.conditions import TRACE_VALUE
from traceweir.streams.board.store.differences import TestedDifference, differences_from_before
from traceweir.streams.board.store.metric import dimension_values
from traceweir.streams.board.store.overview import closed_sessions_before, figures_by_metric, judge_spending, overview
from traceweir.streams.board.store.session_list import sessions

router = APIRouter()


@router.get("/")
def show_overview(request: Request, dashboard: Serving) -> HTMLResponse:
    filters = filters_from(request)
    found = overview(dashboard.store, filters.selection)
    earlier = figures_by_metric(dashboard.store, filters.before())
    moves = differences_from_before(found.metrics, earlier)
    sessions_before = closed_sessions_before(dashboard.store, filters.before())
    criteria = _criteria(found.metrics)
    places = charts.lines_to_draw(criteria, earlier, filters.selection.metric)
    opened = [
        each
        for each in alert_page(dashboard.store, state="raised", limit=MAX_ALERTS).alerts
        if fits(each, filters.selection) and each.onset.earliest < filters.selection.until
    ]
    metrics_drawn = {metric for metric, _ in places}
    charted = [each for each in alerts_in(dashboard.store, filters.selection) if each.stream.metric in metrics_drawn]
    marks = [*marks_of(found.changes, dashboard.options.configs()), *alert_marks(charted)]
    without_values = outages(found.series, found.step_s)
    return page(
        request,
        "overview",
        filters,
        found=found,
        worse=worse_metrics(found.regressions, alert_views(opened, filters, dashboard.options.now()), filters),
        alerts=alert_views(charted, filters, dashboard.options.now()),
        sessions_before=sessions_before,
        sessions_change=count_change(sessions_before or 0, found.coverage.sessions),
        criteria=criteria,
        earlier=charts.by_place(earlier),
        moves=moves,
        moved=_moved(moves),
        total=_total(found.metrics),
        total_before=_total(earlier),
        judged=sorted((each for each in criteria if each.usd or each.input_tokens), key=lambda each: -each.usd),
        spending=judge_spending(dashboard.store, dashboard.options.now(), dashboard.options.budget),
        chart=charts.pass_rate_chart(found.series, places, marks, found.step_s, filters.selection, without_values),
        without_values=without_values,
        sparklines=charts.sparklines(found.metrics, found.series, found.step_s, filters.selection),
        latest=sessions(
            dashboard.store,
            filters.selection,
            readable=lambda text: shown_text(text, dashboard.options.content),
            limit=8,
            status="FAILED",
        ),
        values=dimension_values(dashboard.store, filters.selection),
    )


def _total(metrics: Sequence[MetricFigures]) -> dict[str, float | None]:
    """Returns the pass rate of all criteria with a threshold together, and what the judges of all criteria cost.

    Each criterion counts at one level, because a session counts again in each of its invocations: that of sessions, or else
    the one with most verdicts.
    """
    criteria = _criteria(metrics)
    counted: dict[str, MetricFigures] = {}
    for each in sorted(criteria, key=lambda each: (each.level == "session", each.passed + each.failed)):
        if each.passed + each.failed:
            counted[each.metric] = each
    passed = sum(each.passed for each in counted.values())
    failed = sum(each.failed for each in counted.values())
    return {
        "pass_rate": passed / (passed + failed) if passed + failed else None,
        "usd": sum(each.usd for each in criteria),
        "tokens": sum(each.input_tokens + each.output_tokens for each in criteria),
    }


def _moved(moves: Mapping[charts.Place, TestedDifference]) -> dict[str, int]:
    """Returns how many pass rates of criteria are tested against the span before, and how many differ beyond chance.

    Rates of invocations are not tested, so they are in no number.
    """
    tested = [(name, each) for (name, _), each in moves.items() if each.p_value is not None]
    rates = [each for name, each in tested if each.of == "pass rate" and name not in (GATE, TRACE_VALUE)]
    return {
        "compared": len(rates),
        "worse": sum(each.differs and each.difference < 0 for each in rates),
        "better": sum(each.differs and each.difference > 0 for each in rates),
    }


def _criteria(metrics: Sequence[MetricFigures]) -> list[MetricFigures]:
    return [each for each in metrics if each.metric not in (GATE, TRACE_VALUE)]
