"""Puts the routers of the API together."""

from __future__ import annotations

from fastapi import Depends, FastAPI

from traceweir.streams.board.dashboard.api import comparison, figures, sessions, state
from traceweir.streams.board.dashboard.api.answers import answer_problems, only_known_parameters
from traceweir.streams.board.dashboard.context import Dashboard

OPENAPI = "/api/openapi.json"
_PARTS = (state, figures, sessions, comparison)


def create_api(dashboard: Dashboard) -> FastAPI:
    """Returns the API of a dashboard."""
    api = FastAPI(
        title="Traceweir",
        description="Scores of AI agents, with the reasons where there is none.",
        openapi_url=OPENAPI,
        # Its page loads scripts from the internet.
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(only_known_parameters)],
    )
    dashboard.serve_with(api)
    for each in _PARTS:
        api.include_router(each.router)
    answer_problems(api)
    return api
