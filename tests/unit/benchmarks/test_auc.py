"""Tests the area under the ROC curve (AUC) and its interval: known values, ties, a single class, and groups."""

from __future__ import annotations

import math
import random

import pytest
from benchmarks.auc import auc, interval

SUCCESS, FAILURE = True, False


@pytest.mark.parametrize(
    ("values", "succeeded", "area"),
    [
        ([0, 1], [FAILURE, SUCCESS], 1.0),
        ([0, 1], [SUCCESS, FAILURE], 0.0),
        (
            [0.1, 0.4, 0.35, 0.8],
            [FAILURE, FAILURE, SUCCESS, SUCCESS],
            0.75,
        ),  # the example in the documentation of scikit-learn's roc_auc_score
        ([1, 1, 1], [FAILURE, SUCCESS, FAILURE], 0.5),
        ([1, 1, 0], [FAILURE, SUCCESS, FAILURE], 0.75),  # one pair won, one tied
        ([3, 1, 2, 2, 2], [SUCCESS, SUCCESS, SUCCESS, FAILURE, FAILURE], 0.5),
    ],
)
def test_the_auc_is_the_share_of_pairs_with_the_success_ahead_and_a_tie_counts_half(
    values: list[float], succeeded: list[bool], area: float
) -> None:
    assert auc(values, succeeded) == area


def test_the_auc_equals_the_mann_whitney_u_over_the_number_of_pairs() -> None:
    drawn = random.Random(3)
    values = [drawn.randrange(7) for _ in range(60)]
    succeeded = [drawn.random() < 0.4 for _ in values]
    ranks = [sum(other < value for other in values) + (values.count(value) + 1) / 2 for value in values]
    successes = sum(succeeded)
    u = sum(rank for rank, success in zip(ranks, succeeded, strict=True) if success) - successes * (successes + 1) / 2
    assert auc(values, succeeded) == pytest.approx(u / (successes * (len(values) - successes)), abs=1e-12)


@pytest.mark.parametrize("succeeded", [[], [SUCCESS], [FAILURE], [SUCCESS] * 3, [FAILURE] * 3])
def test_the_auc_of_a_single_class_is_none(succeeded: list[bool]) -> None:
    values = [float(number) for number in range(len(succeeded))]
    assert auc(values, succeeded) is None
    assert interval(values, succeeded, values) is None


def test_values_that_are_not_finite_are_rejected() -> None:
    with pytest.raises(ValueError, match="finite"):
        auc([math.nan, 1], [SUCCESS, FAILURE])
    with pytest.raises(ValueError, match="the numbers of values and labels must be equal, but are 2 and 1"):
        auc([0, 1], [SUCCESS])


def sample(size: int = 200) -> tuple[list[float], list[bool]]:
    drawn = random.Random(5)
    succeeded = [number % 2 == 0 for number in range(size)]
    return [drawn.gauss(0.8 if success else 0.0, 1) for success in succeeded], succeeded


def test_the_interval_is_about_as_wide_as_the_formula_of_hanley_and_mcneil() -> None:
    values, succeeded = sample()
    area = auc(values, succeeded)
    ends = interval(values, succeeded, range(len(values)))
    assert area is not None
    assert ends is not None
    each = len(values) / 2
    wins, losses = area / (2 - area), 2 * area**2 / (1 + area)
    variance = (area * (1 - area) + (each - 1) * (wins - area**2 + losses - area**2)) / each**2
    assert ends[0] < area < ends[1]
    assert ends[1] - ends[0] == pytest.approx(2 * 1.96 * math.sqrt(variance), rel=0.15)


def test_the_interval_is_equal_for_equal_seeds_and_differs_for_different_seeds() -> None:
    values, succeeded = sample(40)
    first = interval(values, succeeded, range(40), draws=700)
    assert first == interval(values, succeeded, range(40), draws=700)
    assert first != interval(values, succeeded, range(40), draws=700, seed=1)


@pytest.mark.slow
def test_sessions_of_a_group_are_resampled_together() -> None:
    values, succeeded = sample(40)
    alone = interval(values, succeeded, range(40))
    assert interval(values * 3, succeeded * 3, [*range(40)] * 3) == alone  # repeated sessions add no information
    narrower = interval(values * 3, succeeded * 3, range(120))
    assert alone is not None
    assert narrower is not None
    assert narrower[1] - narrower[0] < 0.8 * (alone[1] - alone[0])


def test_the_interval_is_none_when_many_resamples_have_a_single_class() -> None:
    values = [float(number) for number in range(8)]
    assert auc(values, [FAILURE] * 7 + [SUCCESS]) == 1.0
    assert interval(values, [FAILURE] * 7 + [SUCCESS], values) is None
