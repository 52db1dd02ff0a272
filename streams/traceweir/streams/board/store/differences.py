"""Says which differences of pass rates and of means chance does not explain: one rule for every table of the dashboard."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

from traceweir.streams.base.statistics.moments import Moments, mean_difference
from traceweir.streams.base.statistics.rate_intervals import rate_difference_interval
from traceweir.streams.base.statistics.significance import exact_rates, holm
from traceweir.streams.board.store.answers import Figures, MetricFigures
from traceweir.streams.board.store.figures import Place

LEAST = 10
"""Least number of verdicts, or of values without one, of each of two samples that are compared."""
LEVEL_OF_PROOF = 0.05
"""The largest p-value, corrected for the number of tests, of a difference that chance does not explain."""
DEPENDENT = "invocation"
"""The level whose results are not tested: those of one session are alike, and the tests take them as independent."""
MOST_COMPUTED = 50
"""Maximum number of differences that are computed if nothing else is asked for."""
_Key = TypeVar("_Key", bound=Hashable)


class Sample(NamedTuple):
    """The results of one side of a difference."""

    passed: int
    """Number of verdicts that PASSED."""
    judged: int
    """Number of verdicts."""
    moments: Moments | None
    """What is known of the mean of the values; None without a value."""


class Pair(NamedTuple):
    """Two samples of one metric at one level."""

    level: str
    first: Sample
    second: Sample

    @property
    def of(self) -> Literal["pass rate", "mean"] | None:
        """What is compared: the means only where no threshold judges a value; None if one side has too few results."""
        if min(self.first.judged, self.second.judged) >= LEAST:
            return "pass rate"
        if self.first.judged or self.second.judged or self.first.moments is None or self.second.moments is None:
            return None
        return "mean" if min(self.first.moments.number, self.second.moments.number) >= LEAST else None


class TestedDifference(NamedTuple):
    """How the second sample of a pair differs from the first one."""

    of: Literal["pass rate", "mean"]
    """What was compared."""
    numbers: tuple[int, int]
    """Number of verdicts, or of values, of both samples."""
    difference: float
    """Second minus first."""
    low: float
    """Lower bound of the 95 % interval (Newcombe for a pass rate, the t-test of `mean_difference` for a mean)."""
    high: float
    """Upper bound of the interval."""
    p_value: float | None
    """P-value (Fisher's exact test, or a t-test), corrected by Holm for all differences that were tested; None if this one was
    not."""
    differs: bool
    """Whether chance does not explain the difference."""

    @property
    def surely(self) -> float:
        """The bound of the interval that is nearest to zero, as a distance; 0 if the interval contains zero."""
        return max(0.0, self.low, -self.high)


def differences_of(
    pairs: Mapping[_Key, Pair],
    *,
    tests: int | None = None,
    most: int = MOST_COMPUTED,
    simultaneous: bool = False,
) -> dict[_Key, TestedDifference]:
    """Returns the difference of each pair whose samples have `LEAST` results or more, and whether chance explains it.

    Pairs of invocations have a difference, and are not tested. Of more than `most` pairs, those that are nearest to chance have
    no difference; they count as tests.

    Args:
        pairs: The pairs by what the caller knows them by.
        tests: Number of tests, if `pairs` has only those of them that are farthest from chance.
        most: Maximum number of differences.
        simultaneous: Whether the intervals are corrected for the number of tests too, so that all of them together have 95 %
            confidence.
    """
    enough = {key: (pair, of) for key, pair in pairs.items() if (of := pair.of) is not None}
    tested = sum(pair.level != DEPENDENT for pair, _ in enough.values()) if tests is None else tests
    # An exact test takes a millisecond, and a table can have thousands of slices.
    farthest = sorted(enough, key=lambda key: -_distance(*enough[key]))[:most]
    at_once = max(1, tested) if simultaneous else 1
    found = {key: difference for key in farthest if (difference := _difference(*enough[key], at_once)) is not None}
    return corrected(found, tested)


def uncorrected(pairs: Mapping[_Key, Pair]) -> dict[_Key, TestedDifference]:
    """Returns the difference of each pair whose samples have `LEAST` results or more, with its own p-value."""
    enough = ((key, pair, pair.of) for key, pair in pairs.items())
    found = {key: _difference(pair, of, 1) for key, pair, of in enough if of is not None}
    return {key: each for key, each in found.items() if each is not None}


def corrected(found: Mapping[_Key, TestedDifference], tests: int) -> dict[_Key, TestedDifference]:
    """Returns differences with p-values that are corrected for the number of tests, and whether chance explains them."""
    p_values = holm([each.p_value for each in found.values()], tests=tests)
    return {
        key: each._replace(p_value=p_value, differs=p_value is not None and p_value <= LEVEL_OF_PROOF)
        for (key, each), p_value in zip(found.items(), p_values, strict=True)
    }


def sample_of(figures: Figures) -> Sample:
    """Returns the sample that figures are of."""
    moments = Moments(figures.evaluated, figures.mean, figures.variance) if figures.mean is not None else None
    return Sample(figures.passed, figures.passed + figures.failed, moments)


def differences_from_before(
    metrics: Sequence[MetricFigures], before: Sequence[MetricFigures]
) -> dict[Place, TestedDifference]:
    """Returns how each metric and level differs from the span before."""
    earlier = {(each.metric, each.level): each for each in before}
    pairs = {
        place: Pair(each.level, sample_of(earlier[place]), sample_of(each))
        for each in metrics
        if (place := (each.metric, each.level)) in earlier
    }
    return differences_of(pairs, most=len(pairs))


def _distance(pair: Pair, of: Literal["pass rate", "mean"]) -> float:
    """Returns about how many standard errors the samples are apart."""
    first = pair.first
    second = pair.second
    if of == "pass rate":
        rate = (first.passed + second.passed) / (first.judged + second.judged)
        apart = second.passed / second.judged - first.passed / first.judged
        variance = rate * (1 - rate) * (1 / first.judged + 1 / second.judged)
    else:
        before = first.moments
        after = second.moments
        if before is None or after is None or before.variance is None or after.variance is None:
            return 0.0
        apart = after.mean - before.mean
        variance = before.variance / before.number + after.variance / after.number
    return abs(apart) / math.sqrt(variance) if variance else 0.0


def _difference(pair: Pair, of: Literal["pass rate", "mean"], tests: int) -> TestedDifference | None:
    """Returns the difference with its own p-value; None if there is no interval."""
    is_tested = pair.level != DEPENDENT
    first = pair.first
    second = pair.second
    if of == "pass rate":
        rates = ((first.passed, first.judged), (second.passed, second.judged))
        low, high = rate_difference_interval(*rates, tests=tests)
        difference = second.passed / second.judged - first.passed / first.judged
        p_value = exact_rates(*rates) if is_tested else None
        return TestedDifference(of, (first.judged, second.judged), difference, low, high, p_value, differs=False)
    if first.moments is None or second.moments is None:
        return None
    found = mean_difference(first.moments, second.moments, tests=tests)
    if found is None:
        return None
    numbers = first.moments.number, second.moments.number
    return TestedDifference(of, numbers, *found[:3], found.p_value if is_tested else None, differs=False)
