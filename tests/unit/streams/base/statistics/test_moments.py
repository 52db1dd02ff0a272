"""The interval of a difference of means is that of SciPy, also for few values and for values far from zero."""

from __future__ import annotations

import statistics

import pytest

from traceweir.streams.base.statistics.moments import Moments, mean_difference

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("statsmodels")]


def of_sums(values: list[float]) -> Moments:
    return Moments.of_sums(len(values), sum(values), sum(value * value for value in values))


@pytest.mark.parametrize(
    "values", [[0.1, 0.9], [0.2, 0.4, 0.9], [number / 21 for number in range(21)], [0.5] * 9 + [0.6]]
)
def test_a_difference_of_means_is_that_of_the_more_careful_of_two_tests(values: list[float]) -> None:
    from scipy.stats import ttest_ind

    others = [0.5, 0.75, 0.6, 0.1, 0.8]

    found = mean_difference(of_sums(values), of_sums(others))
    twenty = mean_difference(of_sums(values), of_sums(others), tests=20)

    expected = max(
        (ttest_ind(others, values, equal_var=is_pooled) for is_pooled in (True, False)), key=lambda each: each.pvalue
    )
    assert found is not None
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert found.p_value == pytest.approx(expected.pvalue)
    assert twenty is not None
    assert max(twenty.high - twenty.low, 0) > found.high - found.low


def test_values_without_any_spread_have_no_interval() -> None:
    assert mean_difference(of_sums([0.5, 0.5]), of_sums([0.75, 0.75])) is None
    assert mean_difference(Moments(2, 0.5, 0.0), Moments(2, 0.75, 0.0)) is None


@pytest.mark.parametrize("far", [0.0, 1e3, 1e6, 1e8, 1e12])
def test_a_variance_of_sums_is_right_or_unknown(far: float) -> None:
    values = [far + number / 7 for number in range(50)]

    found = of_sums(values)

    assert (
        found.variance is None if far >= 1e8 else found.variance == pytest.approx(statistics.variance(values), rel=0.01)
    )


def test_sums_that_are_no_numbers_have_no_variance() -> None:
    assert Moments.of_sums(3, 3e200, float("inf")).variance is None
