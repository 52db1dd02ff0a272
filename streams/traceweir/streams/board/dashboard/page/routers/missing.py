"""Serves the pages of what has no score: results without a value, and dead letters."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from traceweir.streams.board.dashboard.content import shown
from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.board.dashboard.page.answers import filters_from, page
from traceweir.streams.board.store.conditions import NO_CAUSE
from traceweir.streams.board.store.metric import dimension_values
from traceweir.streams.board.store.sessions import dead_letters, not_scored

router = APIRouter()


@router.get("/not-scored")
def show_not_scored(request: Request, dashboard: Serving) -> HTMLResponse:
    filters = filters_from(request)
    found = [shown(each, dashboard.options.content) for each in not_scored(dashboard.store, filters.selection)]
    return page(
        request,
        "not-scored",
        filters,
        found=found,
        no_cause=NO_CAUSE,
        values=dimension_values(dashboard.store, filters.selection),
    )


@router.get("/dead-letters")
def show_dead_letters(request: Request, dashboard: Serving) -> HTMLResponse:
    filters = filters_from(request)
    found = shown(dead_letters(dashboard.store, filters.selection), dashboard.options.content)
    return page(request, "dead-letters", filters, found=found)
