"""Serves the pages of what differs: between two selections, and with a challenger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse

from traceweir.streams.board.dashboard.challengers import UnknownChallengerError, challenger_diff
from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.board.dashboard.page.answers import filters_from, page
from traceweir.streams.board.dashboard.page.filters import filters_of
from traceweir.streams.board.dashboard.result_diff import NoDiffError, shown_diff
from traceweir.streams.board.store.comparison import compare, last_versions
from traceweir.streams.board.store.metric import dimension_values
from traceweir.streams.board.store.selection import Readable, Selection
from traceweir.streams.lab.comparison.sections import flips_of, sections_of

router = APIRouter()

Sides = tuple[Mapping[str, str], Mapping[str, str]]
"""The filters of both sides of a comparison, beside those of the page."""
_SIDES = ("first", "second")


@router.get("/compare")
def show_comparison(request: Request, dashboard: Serving) -> HTMLResponse:
    filters = filters_from(request)
    sides = _sides(request.query_params) or _last_versions(dashboard.store, filters.selection)
    first, second = (filters_of({**filters.kept, **side}, filters.selection.until) for side in sides)
    return page(
        request,
        "compare",
        filters,
        sides=sides,
        first=first,
        second=second,
        found=compare(dashboard.store, first.selection, second.selection),
        query=urlencode(
            filters.kept
            | {f"{name}_{key}": value for name, side in zip(_SIDES, sides, strict=True) for key, value in side.items()}
        ),
        same=first.selection == second.selection,
        values=dimension_values(dashboard.store, filters.selection),
    )


@router.get("/diff")
def show_diff(request: Request, dashboard: Serving) -> HTMLResponse:
    filters = filters_from(request)
    sides = _sides(request.query_params) or ({}, {})
    first, second = (filters_of({**filters.kept, **side}, filters.selection.until) for side in sides)
    found = None
    problem = ""
    try:
        found = shown_diff(dashboard.store, first.selection, second.selection, dashboard.options.content)
    except NoDiffError as error:
        problem = str(error)
    return page(
        request,
        "diff",
        filters,
        first=first,
        second=second,
        problem=problem,
        sections=list(sections_of(found)) if found else [],
        flips=list(flips_of(found)) if found else [],
        query=urlencode(request.query_params),
    )


@router.get("/challenger")
def show_challenger(
    request: Request, name: Annotated[str, Query(min_length=1, max_length=100)], dashboard: Serving
) -> HTMLResponse:
    parameters = {key: value for key, value in request.query_params.items() if key != "name"}
    filters = filters_of(parameters, dashboard.options.now())
    found = None
    problem = ""
    known = next((each for each in dashboard.options.challengers.in_effect if each.name == name), None)
    try:
        found = challenger_diff(dashboard.store, dashboard.options.challengers, name, dashboard.options.content)
    except UnknownChallengerError as error:
        raise HTTPException(404, str(error)) from None
    except NoDiffError as error:
        problem = str(error)
    return page(
        request,
        "challenger",
        filters,
        shown_name=name,
        challenger=known,
        problem=problem,
        sections=list(sections_of(found)) if found else [],
        flips=list(flips_of(found)) if found else [],
    )


def _sides(parameters: Mapping[str, str]) -> Sides | None:
    """Returns the filters of the two sides of a comparison; None if the address names none."""
    first, second = (
        {
            name.removeprefix(f"{side}_"): value
            for name, value in parameters.items()
            if name.startswith(f"{side}_") and value.strip()
        }
        for side in _SIDES
    )
    return (first, second) if first or second else None


def _last_versions(store: Readable, selection: Selection) -> Sides:
    """Returns the two newest versions of an agent in a span, the older one first; no filters if there are none."""
    found = last_versions(store, selection)
    if found is None:
        return {}, {}
    agent = {} if found.agent is None else {"agent_name": found.agent}
    return {**agent, "agent_version": found.older}, {**agent, "agent_version": found.newer}
