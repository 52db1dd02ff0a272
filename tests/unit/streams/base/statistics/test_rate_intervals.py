"""The interval of a difference of means is that of SciPy, also for few values."""

from __future__ import annotations

import pytest

from traceweir.streams.base.statistics.rate_intervals import mean_difference_interval

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("statsmodels")]


def sums(values: list[float]) -> tuple[int, float, float]:
    return len(values), sum(values), sum(value * value for value in values)


@pytest.mark.parametrize("values", [[0.1, 0.9], [0.2, 0.4, 0.9], [number / 21 for number in range(21)]])
def test_the_interval_of_a_difference_of_means_is_that_of_welch(values: list[float]) -> None:
    from scipy.stats import ttest_ind

    others = [0.5, 0.75, 0.6, 0.1, 0.8]

    found = mean_difference_interval(sums(values), sums(others))

    assert found == pytest.approx(tuple(ttest_ind(others, values, equal_var=False).confidence_interval(0.95)))


def test_values_without_any_spread_have_no_interval() -> None:
    assert mean_difference_interval(sums([0.5, 0.5]), sums([0.75, 0.75])) is None
