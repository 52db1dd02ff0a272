"""Answers with what differs: between two selections, and with a challenger."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Response

from traceweir.streams.board.dashboard.api.answers import answer
from traceweir.streams.board.dashboard.api.parameters import First, Second
from traceweir.streams.board.dashboard.challengers import (
    ChallengerInEffect,
    ShownShadow,
    UnknownChallengerError,
    challenger_diff,
)
from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.board.dashboard.result_diff import NoDiffError, shown_diff
from traceweir.streams.board.store.answers import Comparison
from traceweir.streams.board.store.comparison import compare
from traceweir.streams.lab.comparison.document import Diff

router = APIRouter()


@router.get("/comparison", response_model=Comparison)
def read_comparison(first: First, second: Second, dashboard: Serving) -> Any:
    """Two selections side by side, with the differences, second minus first, and their 95 % intervals."""
    return answer(compare(dashboard.store, first, second), dashboard.options.content)


@router.get("/diff", response_model=Diff)
def read_diff(first: First, second: Second, dashboard: Serving) -> Any:
    """What differs between two selections result by result, as `traceweir diff` prints it; base is the first."""
    try:
        found = shown_diff(dashboard.store, first, second, dashboard.options.content)
    except NoDiffError as error:
        raise HTTPException(422, str(error)) from None
    return Response(found.model_dump_json(), media_type="application/json")


@router.get("/challengers", response_model=list[ChallengerInEffect])
def read_challengers(dashboard: Serving) -> Any:
    """The challengers that score a part of the sessions now, as pushed with `traceweir config`."""
    return answer(list(dashboard.options.challengers.in_effect), dashboard.options.content)


@router.get("/shadows", response_model=list[ShownShadow])
def read_shadows(dashboard: Serving) -> Any:
    """The names of the shadows, and of the ended challengers, that have a topic of scores."""
    return answer([ShownShadow(name=name) for name in dashboard.options.challengers.shadows], dashboard.options.content)


@router.get("/challenger-diff", response_model=Diff)
def read_challenger_diff(name: Annotated[str, Query(min_length=1, max_length=100)], dashboard: Serving) -> Any:
    """What a challenger in effect (its last day) or a shadow changes on the sessions that it has scored."""
    try:
        found = challenger_diff(dashboard.store, dashboard.options.challengers, name, dashboard.options.content)
    except UnknownChallengerError as error:
        raise HTTPException(404, str(error)) from None
    except NoDiffError as error:
        raise HTTPException(422, str(error)) from None
    return Response(found.model_dump_json(), media_type="application/json")
