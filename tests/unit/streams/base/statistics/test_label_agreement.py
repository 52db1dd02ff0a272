"""Tests the figures of agreement with labels against statsmodels, a published example, and exact coverage."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from traceweir.streams.base.statistics.label_agreement import (
    LEAST_OF_A_LABEL,
    LabelledVerdicts,
    bias_interval,
    bias_to_yes,
    kappa,
    kappa_interval,
)
from traceweir.streams.base.statistics.rate_intervals import rate_difference_interval, rate_interval

pytestmark = [pytest.mark.xdist_group("statsmodels"), pytest.mark.slow]

COUNTED = [
    LabelledVerdicts(24, 22, 24, 5),
    LabelledVerdicts(24, 24, 24, 0),
    LabelledVerdicts(30, 21, 7, 2),
    LabelledVerdicts(8, 8, 8, 8),
]


@pytest.mark.parametrize("verdicts", COUNTED)
def test_kappa_is_that_of_statsmodels(verdicts: LabelledVerdicts) -> None:
    from statsmodels.stats.inter_rater import cohens_kappa

    good, good_passed, bad, bad_passed = verdicts
    table = [[good_passed, good - good_passed], [bad_passed, bad - bad_passed]]
    assert kappa(verdicts) == pytest.approx(cohens_kappa(table, return_results=False))


def test_kappa_is_that_of_the_worked_example_of_sim_and_wright() -> None:
    """Sim and Wright 2005 (doi:10.1093/ptj/85.3.257), table 1: of 39 patients, 22 and 11 with agreement, 2 and 4 without."""
    found = kappa(LabelledVerdicts(good=24, good_passed=22, bad=15, bad_passed=4))
    assert found is not None
    assert round(found, 2) == 0.67


@pytest.mark.parametrize("verdicts", [each for each in COUNTED if each.good == each.bad])
def test_with_equal_numbers_of_labels_the_interval_of_kappa_is_newcombes(verdicts: LabelledVerdicts) -> None:
    from statsmodels.stats.proportion import confint_proportions_2indep

    good, good_passed, bad, bad_passed = verdicts
    found = kappa_interval(verdicts)
    assert found == pytest.approx(rate_difference_interval((bad_passed, bad), (good_passed, good)))
    theirs = confint_proportions_2indep(good_passed, good, bad_passed, bad, method="newcomb", compare="diff")
    assert found == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize(
    "verdicts", [LabelledVerdicts(24, 20, 0, 0), LabelledVerdicts(0, 0, 3, 3), LabelledVerdicts(0, 0, 0, 0)]
)
def test_without_cases_of_a_label_there_is_no_kappa_and_no_interval(verdicts: LabelledVerdicts) -> None:
    assert (kappa(verdicts), kappa_interval(verdicts), bias_interval(verdicts)) == (None, None, None)


def test_few_verdicts_have_figures_and_no_interval() -> None:
    few = LabelledVerdicts(LEAST_OF_A_LABEL - 1, 2, 20, 5)
    assert kappa(few) is not None
    assert bias_to_yes(few) is not None
    assert (kappa_interval(few), bias_interval(few)) == (None, None)


def expected(good: int, bad: int, good_rate: float, bad_rate: float) -> tuple[float, float]:
    """Returns kappa and bias in a population with these rates, computed from the shares of the four kinds of verdict."""
    share = good / (good + bad)
    passed = share * good_rate + (1 - share) * bad_rate
    agreed = share * good_rate + (1 - share) * (1 - bad_rate)
    by_chance = share * passed + (1 - share) * (1 - passed)
    return (agreed - by_chance) / (1 - by_chance), passed - share


@pytest.mark.slow
@pytest.mark.parametrize(("good", "bad"), [(5, 5), (8, 8), (24, 24), (30, 5)])
def test_95_percent_of_the_intervals_contain_the_value(good: int, bad: int) -> None:
    """The coverage is exact: the probabilities of all outcomes whose interval contains the value are added."""
    from scipy.stats import binom

    outcomes = list(product(range(good + 1), range(bad + 1)))
    bounds = np.array(
        [
            (
                kappa_interval(LabelledVerdicts(good, one, bad, other)),
                bias_interval(LabelledVerdicts(good, one, bad, other)),
            )
            for one, other in outcomes
        ]
    )
    covered = []
    for good_rate, bad_rate in product((0.6, 0.7, 0.8, 0.9, 0.95, 0.98), (0.02, 0.05, 0.1, 0.2, 0.3, 0.4)):
        chances = np.outer(
            binom.pmf(range(good + 1), good, good_rate), binom.pmf(range(bad + 1), bad, bad_rate)
        ).ravel()
        values = np.array(expected(good, bad, good_rate, bad_rate))
        contained = (bounds[:, :, 0] - 1e-12 <= values) & (values <= bounds[:, :, 1] + 1e-12)
        covered.append(chances @ contained)
    assert np.mean(covered, axis=0).min() > 0.93
    assert np.min(covered) > 0.87


def test_an_interval_where_all_agree_says_how_few_cases_there_are() -> None:
    low, high = kappa_interval(LabelledVerdicts(24, 24, 24, 0)) or (0, 0)
    assert high == 1
    assert low == pytest.approx(1 - (2 * (1 - rate_interval(24, 24)[0]) ** 2) ** 0.5)
