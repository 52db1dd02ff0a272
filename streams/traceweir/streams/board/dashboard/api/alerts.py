"""Answers with alerts: those that are open, and those that have ended."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

import orjson
from fastapi import APIRouter, HTTPException, Query, Request, Response

from traceweir.schemas.alert import Alert, AlertState
from traceweir.schemas.base import MAX_IDENTIFIER_CHARS
from traceweir.streams.board.dashboard.api.parameters import Limit
from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.board.store.alerts import AlertPlace, alert_page

router = APIRouter()

OLDER_THAN = "Only alerts after this place in the list, as the header `Link` of an answer names it."
_Name = Annotated[str | None, Query(min_length=1, max_length=MAX_IDENTIFIER_CHARS)]


@router.get("/alerts", response_model=list[Alert])
def read_alerts(
    request: Request,
    dashboard: Serving,
    state: Annotated[AlertState | None, Query(description="`raised`: only open alerts.")] = None,
    metric: _Name = None,
    alert_id: _Name = None,
    limit: Limit = 50,
    older_than: Annotated[str | None, Query(description=OLDER_THAN, min_length=1)] = None,
) -> Any:
    """Alerts as their topic has them, those with the newest record first.

    The header `Link` has the address of the next ones, if there are any, and `X-Total-Count` the number of all.
    """
    try:
        after = AlertPlace.parse(older_than) if older_than is not None else None
    except ValueError as error:
        raise HTTPException(422, f"older_than: {error}") from None
    found = alert_page(dashboard.store, state=state, metric=metric, alert_id=alert_id, limit=limit, after=after)
    # They have ids, names and figures, and no texts of agents that could be hidden.
    document = [each.model_dump(mode="json", by_alias=True) for each in found.alerts]
    listed = Response(orjson.dumps(document), media_type="application/json")
    listed.headers["x-total-count"] = str(found.total)
    if found.next is not None:
        older = urlencode({**request.query_params, "older_than": str(found.next)})
        listed.headers["link"] = f'<{request.url.path}?{older}>; rel="next"'
    return listed
