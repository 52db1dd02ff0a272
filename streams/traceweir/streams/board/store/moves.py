"""Compares the pass rates of metrics with those of another span of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from traceweir.streams.base.statistics.rate_intervals import rate_difference_interval
from traceweir.streams.base.statistics.significance import exact_rates, holm
from traceweir.streams.board.store.answers import Figures, MetricFigures
from traceweir.streams.board.store.figures import Place
from traceweir.streams.board.store.slices import LEAST, LEVEL_OF_PROOF


class Move(NamedTuple):
    """How a pass rate differs from that of the span before."""

    difference: float
    low: float
    """Lower bound of the 95 % interval (Newcombe)."""
    high: float
    """Upper bound of the 95 % interval (Newcombe)."""
    differs: bool
    """Whether chance does not explain it: by Fisher's exact test, corrected by Holm for all metrics and levels."""


def moves_of(metrics: Sequence[MetricFigures], before: Sequence[MetricFigures]) -> Mapping[Place, Move]:
    """Returns the move of each metric and level that has `LEAST` verdicts or more in both spans."""
    earlier = {(each.metric, each.level): _judged(each) for each in before}
    pairs = {
        (each.metric, each.level): (earlier[each.metric, each.level], _judged(each))
        for each in metrics
        if earlier.get((each.metric, each.level), (0, 0))[1] >= LEAST and _judged(each)[1] >= LEAST
    }
    p_values = holm([exact_rates(*sides) for sides in pairs.values()])
    return {
        place: Move(
            second[0] / second[1] - first[0] / first[1],
            *rate_difference_interval(first, second),
            p_value is not None and p_value <= LEVEL_OF_PROOF,
        )
        for (place, (first, second)), p_value in zip(pairs.items(), p_values, strict=True)
    }


def _judged(figures: Figures) -> tuple[int, int]:
    return figures.passed, figures.passed + figures.failed
