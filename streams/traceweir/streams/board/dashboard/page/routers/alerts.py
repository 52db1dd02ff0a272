"""Serves the page of alerts: those that are open, and those that have ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from traceweir.schemas.alert_rule import DEFAULT_ALERT_RULE
from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.board.dashboard.page.alert_view import WATCHED, alert_views, dimension_name
from traceweir.streams.board.dashboard.page.answers import filters_from, page
from traceweir.streams.board.dashboard.page.filters import FilterError
from traceweir.streams.board.store.alert_slices import alert_slices
from traceweir.streams.board.store.alerts import MAX_ALERTS, AlertPlace, alert_page

MOST_STREAMS = 100
"""Watched streams on the page at most."""
ON_A_PAGE = 50
"""Alerts that have ended, on one page."""

router = APIRouter()


@router.get("/alerts")
def show_alerts(request: Request, dashboard: Serving) -> HTMLResponse:
    filters = filters_from(request)
    now = dashboard.options.now()
    wanted: dict[str, Any] = {
        "metric": filters.selection.metric,
        "alert_id": filters.parameters.get("alert_id"),
    }
    after = _place(filters.parameters)
    store = dashboard.store
    opened = None if after is not None else alert_page(store, state="raised", limit=MAX_ALERTS, **wanted)
    ended = alert_page(store, state="resolved", limit=ON_A_PAGE, after=after, **wanted)
    # Each asks the store some questions, so that only the page of one alert has them.
    only = [*(opened.alerts if opened is not None else ()), *ended.alerts] if wanted["alert_id"] is not None else []
    return page(
        request,
        "alerts",
        filters,
        opened=alert_views(opened.alerts, filters, now) if opened is not None else None,
        opened_in_all=opened.total if opened is not None else 0,
        ended=alert_views(ended.alerts, filters, now),
        ended_in_all=ended.total,
        older_than=str(ended.next) if ended.next is not None else None,
        wanted={name: value for name, value in wanted.items() if value is not None},
        rule=DEFAULT_ALERT_RULE,
        slices=alert_slices(store, only[0], now) if only else None,
        watched=dashboard.options.watched_streams().part(metric=wanted["metric"], limit=MOST_STREAMS),
        dimension_name=dimension_name,
        kinds=WATCHED,
    )


def _place(parameters: Mapping[str, str]) -> AlertPlace | None:
    text = parameters.get("older_than")
    try:
        return AlertPlace.parse(text) if text else None
    except ValueError as error:
        raise FilterError(f"older_than: {error}") from None
