"""Serves the pages of what differs: between two selections, and with a challenger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from traceweir.streams.board.dashboard.challengers import UnknownChallengerError, challenger_diff
from traceweir.streams.board.dashboard.content import shown
from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.board.dashboard.page.answers import filters_from, page
from traceweir.streams.board.dashboard.page.filters import Filters, filters_of
from traceweir.streams.board.dashboard.page.formats import iso
from traceweir.streams.board.dashboard.page.side_names import names_of_sides
from traceweir.streams.board.dashboard.result_diff import NoDiffError
from traceweir.streams.board.store.comparison import compare_with_pairs, last_versions
from traceweir.streams.board.store.direction import direction_of_scorer
from traceweir.streams.board.store.metric import dimension_values
from traceweir.streams.board.store.selection import Readable
from traceweir.streams.lab.comparison.document import Diff
from traceweir.streams.lab.comparison.sections import flips_of, sections_of

router = APIRouter()

Sides = tuple[Mapping[str, str], Mapping[str, str]]
"""The filters of both sides of a comparison, beside those of the page."""
_SIDES = ("first", "second")
_OF_PAIRS = ("verdicts", "gate")
"""The titles of the sections that a comparison has for pairs alone; the other ones repeat its figures."""


@router.get("/compare")
def show_comparison(request: Request, dashboard: Serving) -> HTMLResponse:
    filters = filters_from(request)
    sides = _sides(request.query_params) or _last_versions(dashboard.store, filters)
    first, second = (filters_of({**filters.kept, **side}, filters.selection.until) for side in sides)
    found = compare_with_pairs(dashboard.store, first.selection, second.selection)
    pairs = None
    if found.pairs is not None:
        pairs = Diff.model_validate(shown(found.pairs, dashboard.options.content))
    return page(
        request,
        "compare",
        filters,
        sides=sides,
        names=names_of_sides(first.selection, second.selection),
        first=first,
        second=second,
        found=found.comparison,
        directions={each.metric: direction_of_scorer(each.metric) for each in found.comparison.metrics},
        sections=[each for each in sections_of(pairs) if each.title in _OF_PAIRS] if pairs is not None else [],
        flips=list(flips_of(pairs)) if pairs is not None else [],
        same=first.selection == second.selection,
        values=dimension_values(dashboard.store, filters.selection),
    )


@router.get("/diff")
def show_diff(request: Request) -> RedirectResponse:
    """Leads from the page of pairs of former versions to the comparison."""
    return RedirectResponse(f"/compare?{request.url.query}" if request.url.query else "/compare", 308)


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


def _last_versions(store: Readable, filters: Filters) -> Sides:
    """Returns the two newest versions of an agent in a span, the older one first; without them the span before, and the span."""
    found = last_versions(store, filters.selection)
    if found is None:
        first, second = (
            {"since": iso(each.since), "until": iso(each.until)} for each in (filters.before(), filters.selection)
        )
        return first, second
    agent = {} if found.agent is None else {"agent_name": found.agent}
    return {**agent, "agent_version": found.older}, {**agent, "agent_version": found.newer}
