"""Tests rates from labels of people alone, and exact bounds, against exact coverage and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest

from traceweir.streams.base.statistics.people_only import people_rate
from traceweir.streams.base.statistics.rate_intervals import exact_interval, exact_lower_bound
from traceweir.streams.base.statistics.rogan_gladen import KnownRate, can_correct, rogan_gladen, transferred_rate

LEAST_COVERAGE = 0.93


def labels(passed: int, failed: int) -> np.ndarray:
    """Returns ones and zeros."""
    return np.array([1.0] * passed + [0.0] * failed)


@pytest.mark.parametrize("number", [20, 50, 100, 200])
def test_the_interval_of_people_covers_every_rate(number: int) -> None:
    from scipy.stats import binom

    found = [
        people_rate(labels(passed, number - passed), np.ones(number), np.arange(number)) for passed in range(number + 1)
    ]
    low = np.array([each.low for each in found])
    high = np.array([each.high for each in found])
    for rate in np.linspace(0.002, 0.998, 250):
        covers = (low <= rate) & (rate <= high)
        coverage = binom.pmf(np.arange(number + 1), number, rate)[covers].sum()
        assert coverage >= LEAST_COVERAGE, rate


def test_few_failures_take_the_exact_interval_and_many_that_of_wilson() -> None:
    assert people_rate(labels(86, 14), np.ones(100), np.arange(100)).method == "exact"
    assert people_rate(labels(85, 15), np.ones(100), np.arange(100)).method == "wilson"


@pytest.mark.slow
@pytest.mark.xdist_group("statsmodels")
@pytest.mark.parametrize(("passed", "number"), [(0, 20), (19, 20), (20, 20), (37, 100)])
def test_exact_bounds_are_those_of_statsmodels(passed: int, number: int) -> None:
    from statsmodels.stats.proportion import proportion_confint

    assert exact_interval(passed, number) == pytest.approx(proportion_confint(passed, number, method="beta"))
    one_sided = proportion_confint(passed, number, alpha=0.1, method="beta")[0]
    assert exact_lower_bound(passed, number) == pytest.approx(one_sided)


def test_fourteen_of_fourteen_reach_the_bar_and_thirteen_do_not() -> None:
    assert exact_lower_bound(14, 14) == pytest.approx(0.05 ** (1 / 14))
    assert exact_lower_bound(13, 13) < 0.8 < exact_lower_bound(14, 14)


def test_the_rate_of_rogan_and_gladen_is_that_of_the_worked_example() -> None:
    assert rogan_gladen(0.4, 0.9, 0.7) == pytest.approx(1 / 6)


def test_a_transferred_rate_needs_a_judge_that_is_known_to_tell_good_from_bad() -> None:
    assert not can_correct(KnownRate(0.6, 50), KnownRate(0.6, 50))
    assert not can_correct(KnownRate(1.0, 100), KnownRate(1.0, 1))
    assert can_correct(KnownRate(0.9, 100), KnownRate(0.8, 50))


def test_a_transferred_rate_beyond_the_scale_stays_on_it() -> None:
    found = transferred_rate(KnownRate(0.99, 500), KnownRate(0.95, 100), KnownRate(0.9, 50))
    assert (found.value, found.high) == (1.0, 1.0)
    assert 0 < found.low < 1
