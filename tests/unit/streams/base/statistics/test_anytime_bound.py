"""Tests the bound that holds however often one looks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from traceweir.streams.base.statistics.anytime_bound import (
    ERROR,
    anytime_lower_bound,
    is_proven,
    log_evidence,
    most_errors,
)
from traceweir.streams.base.statistics.rate_intervals import exact_lower_bound


@pytest.mark.parametrize(("right", "number", "bar"), [(0, 1, 0.8), (20, 20, 0.8), (93, 100, 0.8), (30, 60, 0.6)])
def test_the_evidence_is_the_average_likelihood_ratio_of_the_higher_rates(right: int, number: int, bar: float) -> None:
    def ratio(rate: float) -> float:
        return float((rate / bar) ** right * ((1 - rate) / (1 - bar)) ** (number - right))

    average = quad(ratio, bar, 1)[0] / (1 - bar)
    assert float(log_evidence(right, number, bar)) == pytest.approx(math.log(average))


@pytest.mark.parametrize("bar", [0.5, 0.8, 0.95])
@pytest.mark.slow
def test_whoever_looks_after_each_label_is_misled_in_one_of_twenty_cases_at_most(bar: float) -> None:
    right = (np.random.default_rng(4).random((2_000, 600)) < bar).cumsum(axis=1)
    proven = log_evidence(right, np.arange(1, 601), bar) >= -math.log(ERROR)
    assert np.mean(proven.any(axis=1)) <= ERROR + 0.01


def test_whoever_looks_at_the_exact_bound_after_each_label_is_misled_more_often() -> None:
    right = (np.random.default_rng(4).random((200, 200)) < 0.8).cumsum(axis=1)
    misled = [any(exact_lower_bound(n, at) > 0.8 for at, n in enumerate(row.tolist(), 1)) for row in right]
    assert np.mean(misled) > 2 * ERROR


@pytest.mark.parametrize(("right", "number"), [(20, 20), (93, 100), (1, 2), (400, 500)])
def test_the_bound_is_the_highest_bar_that_is_proven(right: int, number: int) -> None:
    bound = anytime_lower_bound(right, number)
    assert is_proven(right, number, bound - 1e-9)
    assert not is_proven(right, number, bound + 1e-9)
    assert bound < exact_lower_bound(right, number)


@pytest.mark.parametrize("number", [0, 5])
def test_without_evidence_nothing_is_bounded(number: int) -> None:
    assert anytime_lower_bound(0, number) == 0


def test_the_most_errors_are_those_with_which_it_is_still_proven() -> None:
    numbers = np.arange(0, 300, 7)
    for number, errors in zip(numbers.tolist(), most_errors(numbers, 0.8).tolist(), strict=True):
        assert errors == max((n for n in range(number + 1) if is_proven(number - n, number, 0.8)), default=-1)
