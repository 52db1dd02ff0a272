"""Answers how far the judges of a criterion can be believed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from traceweir.streams.board.dashboard.api.answers import answer
from traceweir.streams.board.dashboard.api.parameters import SelectedMetric
from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.board.dashboard.judge_trust import CriterionTrust, criterion_trust

router = APIRouter()

LEAST_HALF_WIDTH = 0.001
MOST_HALF_WIDTH = 0.5
DEFAULT_HALF_WIDTH = 0.1
_HalfWidth = Annotated[
    float,
    Query(ge=LEAST_HALF_WIDTH, le=MOST_HALF_WIDTH, description="Half the width of the 95 % interval that is wanted."),
]


@router.get("/trust", response_model=CriterionTrust)
def read_trust(selected: SelectedMetric, dashboard: Serving, half_width: _HalfWidth = DEFAULT_HALF_WIDTH) -> Any:
    """The judges of the criterion that `metric` names against labels of people, and the rates that people would give."""
    return answer(criterion_trust(dashboard.store, selected, half_width), dashboard.options.content)
