"""Answers with alerts: those that are open, and those that have ended; and in which slices the change of one is."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

import orjson
from fastapi import APIRouter, HTTPException, Query, Request, Response
from pydantic import BaseModel

from traceweir.schemas.alert import Alert, AlertState
from traceweir.schemas.base import MAX_IDENTIFIER_CHARS
from traceweir.schemas.text import printable
from traceweir.streams.board.dashboard.api.answers import answer
from traceweir.streams.board.dashboard.api.parameters import Limit
from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.board.dashboard.watched_streams import ShownStreams, StreamState
from traceweir.streams.board.store.alert_slices import CarryingSlice, alert_slices
from traceweir.streams.board.store.alerts import AlertPlace, alert_page

router = APIRouter()

MAX_OFFSET = 1_000_000
OLDER_THAN = "Only alerts after this place in the list, as the header `Link` of an answer names it."
_Name = Annotated[str | None, Query(min_length=1, max_length=MAX_IDENTIFIER_CHARS)]


class SliceChange(BaseModel):
    """A value of a dimension whose pass rate has changed as that of the alert."""

    dimension: str
    """Name of the dimension, such as `agent_version`."""
    value: str
    """Its value."""
    before: float
    """Pass rate before the interval of the onset."""
    after: float
    """Pass rate after it."""
    difference: float
    """`after` less `before`."""
    low: float
    """Lower end of the 95 % interval of the difference, for all slices of the answer together."""
    high: float
    """Upper end of it."""
    p_value: float | None
    """P-value, corrected by Holm for all slices that were tested."""
    share: float
    """The share of the results after the onset that have this value, from 0 to 1."""


class AlertWhere(BaseModel):
    """In which slices the change of an alert is, before and after the interval of its onset."""

    alert_id: str
    """Id of the alert."""
    tested: int | None
    """Number of slices with ten verdicts on both sides, all of which were tested. null: no slice can be compared, because
    the alert is not of a pass rate of sessions or traces, is of a user or a label, or has no result after its onset."""
    slices: list[SliceChange]
    """Those that have changed beyond chance, the surest first; at most five."""
    left_out: list[str]
    """Dimensions with too many values."""
    of_one_value: list[str]
    """Dimensions of which all results have the same value: a slice of one is the alert itself."""


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


# An id can contain any character, so that it is a parameter and not a part of the path.
@router.get("/alert-slices", response_model=AlertWhere)
def read_alert_slices(
    alert_id: Annotated[str, Query(min_length=1, max_length=MAX_IDENTIFIER_CHARS)], dashboard: Serving
) -> Any:
    """The slices whose pass rate has changed as that of an alert, as its page shows them. The answer takes some queries."""
    alerts = alert_page(dashboard.store, alert_id=alert_id, limit=1).alerts
    if not alerts:
        raise HTTPException(
            404,
            f"the store has no alert {printable(alert_id, 200)!r}: an alert that has ended is kept for as long as results",
        )
    found = alert_slices(dashboard.store, alerts[0], dashboard.options.now())
    where = AlertWhere(
        alert_id=alert_id,
        tested=None if found is None else found.tested,
        slices=[] if found is None else [_change(each) for each in found.carrying],
        left_out=[] if found is None else found.left_out,
        of_one_value=[] if found is None else found.of_one_value,
    )
    return answer(where, dashboard.options.content)


@router.get("/alert-streams", response_model=ShownStreams)
def read_alert_streams(
    request: Request,
    dashboard: Serving,
    metric: _Name = None,
    rule: Annotated[_Name, Query(description="Only streams of the rule with this `id`.")] = None,
    state: Annotated[StreamState | None, Query(description="`sparse`: too few sessions so far.")] = None,
    limit: Limit = 50,
    offset: Annotated[int, Query(ge=0, le=MAX_OFFSET, description="How many streams to leave out first.")] = 0,
) -> Any:
    """The streams that are watched for alerts, as the dashboard read them from Kafka at `read_at`.

    The header `Link` has the address of the next ones, if there are any, and `X-Total-Count` the number of all. If `read_at`
    is another one on the next page, the list was read again meanwhile.
    """
    found = dashboard.options.watched_streams().part(metric=metric, rule=rule, state=state, offset=offset, limit=limit)
    # They have names and figures, and no texts of agents that could be hidden.
    listed = Response(orjson.dumps(found.model_dump(mode="json")), media_type="application/json")
    listed.headers["x-total-count"] = str(found.total)
    if (after := offset + len(found.streams)) < found.total and found.streams:
        rest = urlencode({**request.query_params, "offset": after})
        listed.headers["link"] = f'<{request.url.path}?{rest}>; rel="next"'
    return listed


def _change(found: CarryingSlice) -> SliceChange:
    effect = found.effect
    return SliceChange(
        dimension=found.dimension,
        value=found.value,
        before=found.before,
        after=found.after,
        difference=effect.difference,
        low=effect.low,
        high=effect.high,
        p_value=effect.p_value,
        share=found.share,
    )
