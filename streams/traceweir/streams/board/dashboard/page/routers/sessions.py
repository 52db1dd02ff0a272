"""Serves the list of sessions, and the page of one session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Form, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from traceweir.schemas.text import printable
from traceweir.streams.board.dashboard.cases import added_case
from traceweir.streams.board.dashboard.content import Content, shown, shown_document, shown_text
from traceweir.streams.board.dashboard.context import Dashboard, Serving
from traceweir.streams.board.dashboard.page import session_view
from traceweir.streams.board.dashboard.page.answers import filters_from, one_of, page
from traceweir.streams.board.dashboard.page.commands import case_command
from traceweir.streams.board.dashboard.page.filters import filters_of
from traceweir.streams.board.dashboard.page.formats import iso
from traceweir.streams.board.dashboard.page.routers.selection import FIRST
from traceweir.streams.board.dashboard.page.work_list import (
    CAUSES,
    CONDITION_LABELS,
    FACET_LABELS,
    ORDERS,
    PAGE_LENGTHS,
    REASONS,
    STATUSES,
    can_fail,
    listed_by,
    position_of,
)
from traceweir.streams.board.store.facets import facets
from traceweir.streams.board.store.metric import dimension_values
from traceweir.streams.board.store.selection import Readable
from traceweir.streams.board.store.session_list import session_page
from traceweir.streams.board.store.sessions import session, trace, what_to_do
from traceweir.streams.lab.evals.capture import Outcome

router = APIRouter()


@router.get("/sessions")
def show_sessions(request: Request, dashboard: Serving) -> HTMLResponse:
    # A place in the list ends with a session's id, whose length and spaces are not those of a filter.
    parameters = dict(request.query_params)
    place = parameters.pop("older_than", None)
    filters = filters_of(parameters, dashboard.options.now())
    listed = listed_by(filters.parameters)
    after = position_of(place, listed.order)

    def readable(text: str) -> str:
        return shown_text(text, dashboard.options.content)

    found = session_page(
        dashboard.store,
        filters.selection,
        listed.conditions,
        order=listed.order,
        readable=readable,
        limit=listed.limit,
        after=after,
    )
    return page(
        request,
        "sessions",
        filters,
        found=found.sessions,
        total=found.total,
        older_than=str(found.next) if found.next is not None else None,
        is_first=after is None,
        listed=listed,
        first=FIRST,
        eval_sets=[each.name for each in dashboard.options.evals.sets()] if dashboard.options.evals is not None else [],
        api_query=urlencode(
            {
                **listed.parameters,
                **({"metric": filters.selection.metric} if filters.selection.metric is not None else {}),
                **filters.selection.dimensions,
                "since": iso(filters.selection.since),
                "until": iso(filters.selection.until),
            }
        ),
        facets=facets(dashboard.store, filters.selection, listed.conditions, readable),
        facet_labels=FACET_LABELS,
        can_fail=can_fail,
        condition_labels=CONDITION_LABELS,
        statuses=STATUSES,
        reasons=REASONS,
        causes=CAUSES,
        orders=ORDERS,
        lengths=PAGE_LENGTHS,
        values=dimension_values(dashboard.store, filters.selection),
    )


@router.get("/session")
def show_session(request: Request, dashboard: Serving, session_id: str = "") -> HTMLResponse:
    filters = filters_from(request)
    details = session(dashboard.store, session_id) if session_id else None
    if details is None:
        raise HTTPException(
            404,
            f"The store has no session {printable(session_id, 200)!r}: it is older than the store keeps, or not "
            "closed yet.",
        )
    document = shown(details, dashboard.options.content)
    case = one_of(filters.parameters, "case", get_args(Outcome))
    segments = session_view.segment_views(document["segments"])  # type: ignore[arg-type]
    scores = session_view.score_views(document["results"], document["replaced_results"], segments)  # type: ignore[arg-type]
    return page(
        request,
        "session",
        filters,
        session_id=session_id,
        texts_since=_texts_since(dashboard),
        segments=segments,
        scores=scores,
        resting_on=session_view.resting_on(scores),
        left_out=[
            (details.segments_left_out, "segments"),
            (details.results_left_out, "results"),
            (details.replaced_results_left_out, "replaced results"),
        ],
        nearest=_nearest(dashboard.store, scores, segments, dashboard.options.content),
        what_to_do=what_to_do,
        case=case,
        case_command=case_command(session_id, dashboard.options.evalset, replace=case == "refused"),
    )


@router.post("/session/case")
def add_as_case(session_id: Annotated[str, Form(min_length=1, max_length=1_024)], dashboard: Serving) -> Response:
    found = added_case(dashboard.store, session_id, dashboard.options.evalset, dashboard.options.content)
    query = urlencode({"session_id": session_id, "case": found.outcome})
    return RedirectResponse(f"/session?{query}#case", 303)


def _texts_since(dashboard: Dashboard) -> datetime | None:
    options = dashboard.options
    return options.now() - options.retention.texts if options.retention is not None else None


def _nearest(
    store: Readable,
    scores: Sequence[session_view.ScoreView],
    segments: Sequence[session_view.SegmentView],
    content: Content,
) -> session_view.NearestTrace | None:
    nearest = session_view.nearest_of(scores)
    if nearest is None:
        return None
    session_id, document = trace(store, nearest.trace_id)
    known = shown_document(document, content) if document is not None else None
    own = next((each for segment in segments for each in segment.traces if each.get("id") == nearest.of), None)
    return session_view.compared(nearest, session_id, own, known)
