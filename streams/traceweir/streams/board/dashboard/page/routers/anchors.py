"""Serves the page of anchors: what they say about the judge of each criterion."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.board.dashboard.page.answers import filters_from, page

router = APIRouter()


@router.get("/anchors")
def show_anchors(request: Request, dashboard: Serving) -> HTMLResponse:
    return page(request, "anchors", filters_from(request), standing=dashboard.options.anchors())
