"""Serves the page on which users and outcomes have their say, apart from what calibrates a judge."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from traceweir.streams.board.dashboard.content import shown
from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.board.dashboard.page.answers import filters_from, page
from traceweir.streams.board.store.feedback import feedback
from traceweir.streams.board.store.metric import dimension_values

router = APIRouter()


@router.get("/feedback")
def show_feedback(request: Request, dashboard: Serving) -> HTMLResponse:
    filters = filters_from(request)
    selection = replace(filters.selection, metric=None)
    return page(
        request,
        "feedback",
        filters,
        found=shown(feedback(dashboard.store, selection), dashboard.options.content),
        values=dimension_values(dashboard.store, selection),
    )
