"""Answers with sessions, and adds one to the eval set."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, HTTPException, Query, Request

from traceweir.schemas.text import printable
from traceweir.streams.board.dashboard.api.answers import answer
from traceweir.streams.board.dashboard.api.parameters import Limit, Selected, Wanted
from traceweir.streams.board.dashboard.cases import CaseAdded, added_case
from traceweir.streams.board.dashboard.content import shown_text
from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.board.store.answers import SessionDetails, SessionSummary
from traceweir.streams.board.store.facets import Facets, facets
from traceweir.streams.board.store.paging import Order, place_of
from traceweir.streams.board.store.session_list import session_page
from traceweir.streams.board.store.sessions import session

router = APIRouter()

OLDER_THAN = "Only sessions after this place in the list, as the header `Link` of an answer names it."


@router.get("/sessions", response_model=list[SessionSummary])
def read_sessions(
    request: Request,
    selected: Selected,
    wanted: Wanted,
    dashboard: Serving,
    order: Order = "newest",
    limit: Limit = 50,
    older_than: Annotated[str | None, Query(description=OLDER_THAN, min_length=1)] = None,
) -> Any:
    """Sessions, the newest first, by the lowest or the highest value of `metric`, or those with most failed criteria first.

    The header `Link` has the address of the next ones, if there are any, and `X-Total-Count` the number of all, if it is
    known.
    """
    try:
        found = session_page(
            dashboard.store,
            selected,
            wanted,
            order=order,
            readable=lambda each: shown_text(each, dashboard.options.content),
            limit=limit,
            after=place_of(older_than, order) if older_than is not None else None,
        )
    except ValueError as error:
        raise HTTPException(422, f"{'older_than' if older_than is not None else 'order'}: {error}") from None
    listed = answer(found.sessions, dashboard.options.content)
    if found.total is not None:
        listed.headers["x-total-count"] = str(found.total)
    if found.next is not None:
        older = urlencode({**request.query_params, "older_than": str(found.next)})
        listed.headers["link"] = f'<{request.url.path}?{older}>; rel="next"'
    return listed


@router.get("/facets", response_model=Facets)
def read_facets(selected: Selected, wanted: Wanted, dashboard: Serving) -> Any:
    """By what the sessions of `/api/sessions` can be narrowed, with the number of sessions for each value."""
    found = facets(dashboard.store, selected, wanted, lambda each: shown_text(each, dashboard.options.content))
    return answer(found, dashboard.options.content)


# An id can contain any character, so that it is a parameter and not a part of the path.
@router.get("/session", response_model=SessionDetails)
def read_session(session_id: Annotated[str, Query(min_length=1, max_length=1_024)], dashboard: Serving) -> Any:
    """A session, its results, and the replaced results. Of a very long one the last part; it says how much is left out."""
    found = session(dashboard.store, session_id)
    if found is None:
        raise HTTPException(
            404,
            f"the store has no session {printable(session_id, 200)!r}: it is older than the store keeps, or not closed yet",
        )
    return answer(found, dashboard.options.content)


@router.post("/case", response_model=CaseAdded)
def add_case(session_id: Annotated[str, Form(min_length=1, max_length=1_024)], dashboard: Serving) -> CaseAdded:
    """Adds a session to the eval set that TRACEWEIR_DASHBOARD_EVALSET names, as a case with the conversation verbatim."""
    return added_case(dashboard.store, session_id, dashboard.options.evalset, dashboard.options.content)
