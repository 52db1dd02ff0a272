"""Puts the routers of the API together."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, FastAPI

from traceweir.streams.board.dashboard.api import (
    alerts,
    anchors,
    comparison,
    figures,
    health,
    labels,
    prometheus,
    query,
    sessions,
    state,
    trust,
)
from traceweir.streams.board.dashboard.api.addresses import PREFIX, HeadAsGet, Unversioned
from traceweir.streams.board.dashboard.api.answers import RequestProblem, answer_problems, only_known_parameters

OPENAPI = f"{PREFIX}/openapi.json"
EVENTS = f"{PREFIX}/events"
_PARTS = (state, figures, query, sessions, comparison, labels, trust, prometheus, alerts, anchors)
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": RequestProblem, "description": "The request cannot be read"},
    401: {"model": RequestProblem, "description": "The token is missing or wrong"},
    403: {
        "model": RequestProblem,
        "description": "The token does not have the right, or the request is that of another site",
    },
    404: {"model": RequestProblem, "description": "There is no such thing"},
    413: {"model": RequestProblem, "description": "The request is too large"},
    421: {"model": RequestProblem, "description": "Without a token, only this machine is answered under its own name"},
    422: {"model": RequestProblem, "description": "A parameter is missing, unknown, given twice, or out of its range"},
    500: {"model": RequestProblem, "description": "The dashboard failed"},
    503: {
        "model": RequestProblem,
        "description": "The store cannot answer now, or too many requests wait; try again later",
    },
}


class _Api(FastAPI):
    """Describes a stream as OpenAPI 3.1 can: FastAPI writes `itemSchema`, which only OpenAPI 3.2 knows."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            stream = super().openapi()["paths"][EVENTS]["get"]["responses"]["200"]["content"]["text/event-stream"]
            stream.pop("itemSchema", None)
            stream["schema"] = {"type": "string"}
        return super().openapi()


def create_api() -> FastAPI:
    """Returns the API. The dashboard that answers is the one that serves with it."""
    api = _Api(
        title="Traceweir",
        description="Scores of AI agents, with the reasons where there is none.",
        version="1",
        openapi_url=OPENAPI,
        # Its page loads scripts from the internet.
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(only_known_parameters)],
    )
    for each in _PARTS:
        api.include_router(each.router, prefix=PREFIX, responses=_PROBLEMS)
    api.include_router(health.router, responses={code: _PROBLEMS[code] for code in (401, 421, 422, 500)})
    answer_problems(api)
    api.add_middleware(HeadAsGet)
    api.add_middleware(Unversioned)
    return api
