"""Compares the pass rates of metrics with those of another span of time, or of another selection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from traceweir.streams.base.statistics.rate_intervals import rate_difference_interval
from traceweir.streams.base.statistics.significance import exact_rates, holm
from traceweir.streams.board.store.answers import Figures, MetricFigures
from traceweir.streams.board.store.figures import Place

LEAST = 10
"""Least number of verdicts of each of two rates that are compared."""
LEVEL_OF_PROOF = 0.05
"""The largest p-value, corrected for the number of tests, of a difference that chance does not explain."""
DEPENDENT = "invocation"
"""The level whose results are not tested: those of one session are alike, and the test takes them as independent."""
Rates = tuple[tuple[int, int], tuple[int, int]]
"""Two rates, each as (passed, judged)."""


class Move(NamedTuple):
    """How a pass rate differs from that of the span before."""

    difference: float
    low: float
    """Lower bound of the 95 % interval (Newcombe)."""
    high: float
    """Upper bound of the 95 % interval (Newcombe)."""
    differs: bool
    """Whether chance does not explain it."""


def moves_of(metrics: Sequence[MetricFigures], before: Sequence[MetricFigures]) -> Mapping[Place, Move]:
    """Returns the move of each metric and level that has `LEAST` verdicts or more in both spans."""
    earlier = {(each.metric, each.level): each for each in before}
    pairs = {
        place: (judged(earlier[place]), judged(each))
        for each in metrics
        if (place := (each.metric, each.level)) in earlier
    }
    enough = {place: rates for place, rates in pairs.items() if min(number for _, number in rates) >= LEAST}
    differing = differing_rates(pairs)
    return {
        place: Move(
            second[0] / second[1] - first[0] / first[1],
            *rate_difference_interval(first, second),
            place in differing,
        )
        for place, (first, second) in enough.items()
    }


def differing_rates(pairs: Mapping[Place, Rates]) -> set[Place]:
    """Returns the places whose two rates differ beyond chance: by Fisher's exact test, corrected by Holm for all of them.

    Rates with fewer than `LEAST` verdicts, and those of invocations, are not tested.
    """
    tested = {
        place: rates
        for place, rates in pairs.items()
        if place[1] != DEPENDENT and min(number for _, number in rates) >= LEAST
    }
    corrected = holm([exact_rates(*rates) for rates in tested.values()])
    return {
        place
        for place, p_value in zip(tested, corrected, strict=True)
        if p_value is not None and p_value <= LEVEL_OF_PROOF
    }


def judged(figures: Figures) -> tuple[int, int]:
    """Returns how many verdicts have passed, and how many there are."""
    return figures.passed, figures.passed + figures.failed
