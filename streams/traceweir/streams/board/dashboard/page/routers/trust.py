"""Serves the page on which labels of people say how far a judge can be believed, and what the rate really is."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from traceweir.streams.board.dashboard.api.trust import DEFAULT_HALF_WIDTH
from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.board.dashboard.judge_trust import MAX_DISAGREEMENTS, criterion_trust
from traceweir.streams.board.dashboard.page.answers import filters_from, page
from traceweir.streams.board.store.metric import dimension_values
from traceweir.streams.board.store.review import review_criteria

router = APIRouter()


@router.get("/trust")
def show_trust(request: Request, dashboard: Serving) -> HTMLResponse:
    filters = filters_from(request)
    everything = replace(filters.selection, metric=None)
    found = None
    kappa_when = ""
    if filters.selection.metric is not None:
        # NumPy is imported where it is needed.
        from traceweir.streams.base.statistics.drawn_kappa import WHEN

        kappa_when = WHEN
        found = criterion_trust(dashboard.store, filters.selection, DEFAULT_HALF_WIDTH)
    return page(
        request,
        "trust",
        filters,
        criteria=review_criteria(dashboard.store, everything),
        chosen=filters.selection.metric,
        found=found,
        kappa_when=kappa_when,
        most=MAX_DISAGREEMENTS,
        values=dimension_values(dashboard.store, everything),
    )
