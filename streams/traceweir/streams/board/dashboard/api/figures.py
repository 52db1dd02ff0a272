"""Answers with figures: those of a time range, of a metric, of judges, and of what has no score."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from traceweir.streams.board.dashboard.api.answers import answer
from traceweir.streams.board.dashboard.api.parameters import Limit, Selected, SelectedMetric
from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.board.store.answers import DimensionValues, MetricOverTime, Overview
from traceweir.streams.board.store.metric import dimension_values, metric
from traceweir.streams.board.store.missing_answers import DeadLetterCounts, JudgeSpending, NotScoredCount
from traceweir.streams.board.store.overview import judge_spending, overview
from traceweir.streams.board.store.sessions import dead_letters, not_scored

router = APIRouter()


@router.get("/overview", response_model=Overview)
def read_overview(selected: Selected, dashboard: Serving) -> Any:
    """Figures of each metric in a time range, their trend, changes of versions and configs, and coverage."""
    return answer(overview(dashboard.store, selected), dashboard.options.content)


@router.get("/metric", response_model=MetricOverTime)
def read_metric(selected: SelectedMetric, dashboard: Serving) -> Any:
    """The metric that `metric` names: its trend, its values, where it differs, and the results to look at."""
    return answer(metric(dashboard.store, selected), dashboard.options.content)


@router.get("/values", response_model=DimensionValues)
def read_values(selected: Selected, dashboard: Serving) -> Any:
    """The values that can be selected: those with results that meet all other filters, so that each one finds something."""
    return answer(dimension_values(dashboard.store, selected), dashboard.options.content)


@router.get("/judge-spending", response_model=JudgeSpending)
def read_judge_spending(dashboard: Serving) -> Any:
    """What judges were paid today, in UTC, and what is left of the daily budget if TRACEWEIR_DASHBOARD_CONFIG has one."""
    return answer(
        judge_spending(dashboard.store, dashboard.options.now(), dashboard.options.budget), dashboard.options.content
    )


@router.get("/not-scored", response_model=list[NotScoredCount])
def read_not_scored(selected: Selected, dashboard: Serving) -> Any:
    """Why results have no value, with an example and what to do, the most frequent reason first."""
    return answer(not_scored(dashboard.store, selected), dashboard.options.content)


@router.get("/dead-letters", response_model=DeadLetterCounts)
def read_dead_letters(selected: Selected, dashboard: Serving, limit: Limit = 50) -> Any:
    """Records that could not be processed. Filters by dimension do not apply: such a record has none."""
    return answer(dead_letters(dashboard.store, selected, limit=limit), dashboard.options.content)
