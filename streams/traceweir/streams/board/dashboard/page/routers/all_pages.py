"""Puts the routers of all pages together."""

from __future__ import annotations

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse

from traceweir.streams.board.dashboard.page.answers import note_stored_rows
from traceweir.streams.board.dashboard.page.routers import (
    alerts,
    anchors,
    comparison,
    configs,
    evals,
    feedback,
    metrics,
    missing,
    overview,
    review,
    selection,
    sessions,
    trust,
    views,
)

_PARTS = (
    overview,
    alerts,
    sessions,
    selection,
    metrics,
    missing,
    comparison,
    configs,
    evals,
    review,
    trust,
    feedback,
    anchors,
    views,
)


def page_router() -> APIRouter:
    """Returns the routes of all pages."""
    router = APIRouter(
        include_in_schema=False, default_response_class=HTMLResponse, dependencies=[Depends(note_stored_rows)]
    )
    for each in _PARTS:
        router.include_router(each.router)
    return router
