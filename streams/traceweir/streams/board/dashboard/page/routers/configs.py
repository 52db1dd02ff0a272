"""Serves the page of a config: who pushed it, when and why, and what it changed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.board.dashboard.page.answers import filters_from, page
from traceweir.streams.board.dashboard.page.diff import MAX_WORDS
from traceweir.streams.board.dashboard.pushed_configs import document_of, pushes_of

router = APIRouter()


@router.get("/config")
def show_config(
    request: Request, dashboard: Serving, digest: Annotated[str, Query(min_length=1, max_length=1_024)]
) -> HTMLResponse:
    configs = dashboard.options.configs()
    recorded = configs.by_digest.get(digest)
    return page(
        request,
        "config",
        filters_from(request),
        digest=digest,
        pushes=pushes_of(configs, digest),
        recorded=recorded,
        document_of=document_of,
        most_words=MAX_WORDS,
    )
