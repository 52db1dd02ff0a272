"""Serves what can be done with the sessions that a person has selected in the list: files, cases, and calls of the API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote, urlencode

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import HTMLResponse

from traceweir.schemas.text import printable
from traceweir.streams.board.dashboard.access import COOKIE
from traceweir.streams.board.dashboard.cases import NoCaseError, NoSessionError, add_session
from traceweir.streams.board.dashboard.content import shown_text
from traceweir.streams.board.dashboard.context import Dashboard, Serving
from traceweir.streams.board.dashboard.page.answers import page
from traceweir.streams.board.dashboard.page.commands import api_commands, case_command
from traceweir.streams.board.dashboard.page.filters import FilterError, filters_of
from traceweir.streams.board.dashboard.session_export import ExportFormat, exported
from traceweir.streams.board.store.answers import SessionSummary
from traceweir.streams.board.store.session_summaries import summaries_of
from traceweir.streams.board.store.sessions import MAX_LISTED
from traceweir.streams.board.store.tables import key_of
from traceweir.streams.intake.formats.documents import InputError

router = APIRouter()

FIRST = 10
"""Number of sessions that one box selects, from the first one of the page on."""
MAX_CASES = 100
"""Maximum number of sessions that one request adds to an eval set: each case writes the file."""


@dataclass(frozen=True)
class _Outcome:
    """What became of a session that was to be a case."""

    session_id: str
    outcome: str
    """`added`, `unchanged` or `refused`; or why the session cannot be a case."""
    command: str | None = None
    """The command that adds it or replaces the case; None: there is nothing to do, or no command can name the session."""


@router.post("/sessions/selection")
def use_selection(
    request: Request,
    dashboard: Serving,
    form: Annotated[Literal["csv", "jsonl", "parquet", "evalset", "api"], Form()],
    selected: Annotated[list[str] | None, Form(max_length=MAX_LISTED)] = None,
    listed: Annotated[list[str] | None, Form(max_length=MAX_LISTED)] = None,
    first: Annotated[bool, Form()] = False,
    every: Annotated[bool, Form()] = False,
    query: Annotated[str, Form(max_length=20_000)] = "",
    evalset: Annotated[str, Form(max_length=1_024)] = "",
) -> Response:
    """Returns the selected sessions as a file, adds them to the eval set, or shows how to ask the API for them.

    Args:
        request: The request.
        dashboard: The dashboard.
        form: What to do with the sessions.
        selected: The selected sessions, each as `SEGMENT,SESSION` with a percent-encoded id.
        listed: The sessions of the page.
        first: Whether the first sessions of the page are selected too.
        every: Whether all sessions of the page are selected.
        query: The parameters of `/api/v1/sessions` that give the list.
        evalset: The eval set of the folder of evals; empty: that of TRACEWEIR_DASHBOARD_EVALSET.
    """
    on_page = listed or []
    chosen = on_page if every else [*(on_page[:FIRST] if first else ()), *(selected or ())]
    places = [_place(each) for each in dict.fromkeys(chosen)]
    if not places:
        raise FilterError("no session is selected: select sessions in the list, and choose again")
    if form == "evalset":
        names = list(dict.fromkeys(session_id for session_id, _ in places))
        return _as_cases(request, dashboard, names, _evalset(dashboard, evalset))
    if form == "api":
        return _as_calls(request, dashboard, list(dict.fromkeys(session_id for session_id, _ in places)), query)
    return _as_file(dashboard, places, form)


def _as_file(dashboard: Dashboard, places: list[tuple[str, int]], form: ExportFormat) -> Response:
    rows = [{"key": key_of(session_id), "session_id": session_id, "segment": segment} for session_id, segment in places]
    found: list[SessionSummary] = summaries_of(
        dashboard.store, rows, lambda text: shown_text(text, dashboard.options.content)
    )
    file = exported(found, form)
    disposition = f'attachment; filename="{file.name}"'
    return Response(file.content, media_type=file.media_type, headers={"content-disposition": disposition})


def _evalset(dashboard: Dashboard, name: str) -> Path | None:
    if not name:
        return dashboard.options.evalset
    found = dashboard.options.evals.eval_set(name) if dashboard.options.evals is not None else None
    if found is None:
        raise FilterError(f"evalset: there is no eval set {printable(name, 200)!r}: choose one of the page Evals")
    return found.path


def _as_cases(request: Request, dashboard: Dashboard, session_ids: list[str], evalset: Path | None) -> HTMLResponse:
    if len(session_ids) > MAX_CASES:
        raise FilterError(f"{len(session_ids)} sessions are selected; at most {MAX_CASES} become cases at once")
    outcomes = [
        _case(dashboard, session_id, evalset)
        if evalset is not None and dashboard.options.content != "none"
        else _Outcome(session_id, "", case_command(session_id, evalset, replace=False))
        for session_id in session_ids
    ]
    return _selection_page(request, dashboard, outcomes=outcomes, evalset=evalset)


def _case(dashboard: Dashboard, session_id: str, evalset: Path) -> _Outcome:
    try:
        outcome = add_session(dashboard.store, session_id, evalset).outcome
    except (NoSessionError, NoCaseError, InputError) as error:
        return _Outcome(session_id, printable(str(error), 500), case_command(session_id, evalset, replace=False))
    command = case_command(session_id, evalset, replace=True) if outcome == "refused" else None
    return _Outcome(session_id, outcome, command)


def _as_calls(request: Request, dashboard: Dashboard, session_ids: list[str], query: str) -> HTMLResponse:
    base = str(request.base_url).rstrip("/")
    lists = [f"{base}/api/v1/sessions?{query}"] if query else []
    addresses = [f"{base}/api/v1/session?{urlencode({'session_id': each})}" for each in session_ids]
    with_token = COOKIE in request.cookies
    calls = [*api_commands(lists, with_token=with_token), *api_commands(addresses, with_token=with_token)]
    return _selection_page(request, dashboard, calls=calls)


def _selection_page(
    request: Request,
    dashboard: Dashboard,
    *,
    outcomes: Sequence[_Outcome] = (),
    evalset: Path | None = None,
    calls: Sequence[str] = (),
) -> HTMLResponse:
    filters = filters_of({}, dashboard.options.now())
    return page(request, "selection", filters, outcomes=outcomes, evalset=evalset, calls=calls)


def _place(text: str) -> tuple[str, int]:
    segment, _, encoded = text.partition(",")
    session_id = unquote(encoded)
    if not session_id or not segment.isascii() or not segment.isdigit() or len(session_id) > 1_100:
        raise FilterError(f"selected: {printable(text, 100)!r} is not of the form SEGMENT,SESSION")
    return session_id, int(segment)
